//! A new head is drawn while it is loaded. Alone in its process: the backend has one generator, and other tests draw
//! from it.

use std::path::Path;

use burn::tensor::backend::Backend;
use burn_flex::Flex;
use conformax_train::checkpoint::load_bert;

#[test]
fn depends_on_the_seed_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/checkpoints/bert");
    let device = Default::default();
    let head = |seed| {
        Flex::seed(&device, seed);
        let model = load_bert::<Flex>(&folder, 5, &device).unwrap();
        // What a training loop does before its first step.
        Flex::seed(&device, 99);
        model.head.weight.val().into_data()
    };
    assert_eq!(head(1), head(1));
    assert_ne!(head(1), head(2));
}
