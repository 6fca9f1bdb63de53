//! Views of `ndarray` as logits: the same rows, borrowed, or an error and never rows in another order.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use conformax::{Alpha, EntmaxScore, Error, Gamma, Logits, calibrate};
use ndarray::{Array2, ArrayView2, s};

const CLASSES: usize = 5;

fn rows() -> Array2<f64> {
    Array2::from_shape_fn((40, CLASSES), |(row, class)| ((row * 7 + class * 11) % 13) as f64 / 4.0)
}

#[test]
fn gives_the_sets_of_the_same_slice() {
    let (rows, labels) = (rows(), [0, 1, 2, 3, 4].repeat(8));
    let score = EntmaxScore { gamma: Gamma::new(1.5).unwrap() };
    let slice = Logits::new(rows.as_slice().unwrap(), CLASSES).unwrap();
    let view = Logits::try_from(rows.view()).unwrap();
    assert_eq!((view.len(), view.classes()), (40, CLASSES));
    let model = calibrate(score, view, &labels, Alpha::new(0.2).unwrap()).unwrap();
    assert_eq!(model.predict(view).unwrap(), model.predict(slice).unwrap());
}

#[test]
fn borrows_whole_rows_of_a_larger_array() {
    let rows = rows();
    let part = Logits::try_from(rows.slice(s![10..20, ..])).unwrap();
    assert_eq!(part.len(), 10);
    assert!(std::ptr::eq(part.row(0).unwrap().logits().as_ptr(), &raw const rows[[10, 0]]));
}

#[test]
fn refuses_rows_that_do_not_lie_one_after_the_other() {
    let rows = rows();
    let fault = |view: ArrayView2<'_, f64>| Logits::try_from(view).err();
    assert_eq!(fault(rows.t()), Some(Error::Layout), "Fortran order");
    assert_eq!(fault(rows.slice(s![.., 1..])), Some(Error::Layout), "columns left out");
    assert_eq!(fault(rows.slice(s![..;2, ..])), Some(Error::Layout), "every other row");
    assert_eq!(fault(rows.slice(s![..;-1, ..])), Some(Error::Layout), "from the last row up");
    assert_eq!(fault(Array2::zeros((3, 0)).view()), Some(Error::Classes(0)), "no classes");
    assert_eq!(fault(rows.t().as_standard_layout().view()), None, "copied into order");
}
