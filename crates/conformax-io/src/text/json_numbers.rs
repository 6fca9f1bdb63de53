//! The numbers of a row in JSON: one for each class, the first that is none told with its place.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::Problem;
use crate::text::json_row::RowFault;

/// A list of so many numbers.
pub(super) struct Numbers(pub(super) usize);

impl<'de> DeserializeSeed<'de> for Numbers {
    type Value = Result<Vec<f64>, RowFault>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Numbers {
    type Value = Result<Vec<f64>, RowFault>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        // Never more than a row's worth, whatever comes.
        let mut numbers = Vec::with_capacity(self.0.min(1 << 20));
        let (mut found, fault) = (0, RefCell::new(None));
        while list.next_element_seed(Number(&fault))?.is_some_and(|number| {
            if found < self.0 {
                numbers.push(number);
            }
            found += 1;
            true
        }) {
            if let Some(fault) = &mut *fault.borrow_mut() {
                let RowFault { class, .. } = fault;
                class.get_or_insert(found - 1);
            }
        }
        Ok(match fault.into_inner() {
            _ if found != self.0 => Err(Problem::Ragged { wanted: self.0, found }.into()),
            Some(fault) => Err(fault),
            None => Ok(numbers),
        })
    }
}

/// A number, or text that reads as one; the first that is neither is noted and the rest is read on.
struct Number<'a>(&'a RefCell<Option<RowFault>>);

impl Number<'_> {
    fn fault(&self, problem: Problem) -> f64 {
        self.0.borrow_mut().get_or_insert(problem.into());
        f64::NAN
    }
}

impl<'de> DeserializeSeed<'de> for Number<'_> {
    type Value = f64;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<f64, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Number<'_> {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_f64<E>(self, number: f64) -> Result<f64, E> {
        Ok(number)
    }

    fn visit_i64<E>(self, number: i64) -> Result<f64, E> {
        Ok(number as f64)
    }

    fn visit_u64<E>(self, number: u64) -> Result<f64, E> {
        Ok(number as f64)
    }

    fn visit_str<E>(self, text: &str) -> Result<f64, E> {
        Ok(text.parse().unwrap_or_else(|_| self.fault(Problem::NotANumber(text.to_owned()))))
    }

    fn visit_unit<E>(self) -> Result<f64, E> {
        Ok(self.fault(Problem::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<f64, E> {
        Ok(self.fault(Problem::NotANumber(value.to_string())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<f64, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.fault(Problem::NotANumber("a list".to_owned())))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<f64, M::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self.fault(Problem::NotANumber("an object".to_owned())))
    }
}
