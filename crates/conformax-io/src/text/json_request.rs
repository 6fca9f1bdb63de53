//! The rows of a request: `{"rows": [{…}, {…}]}`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::text::json_row::{JsonLabel, JsonRow, JsonRows, LabelsAlone, RowFault, RowsAlone};

/// Why the rows of a request cannot be read.
#[derive(Debug)]
pub enum RequestFault {
    /// It is no object with a list of rows; the message says where.
    Json(String),
    /// It has more rows than it may.
    TooMany(usize),
    /// One of its rows cannot be.
    Row(usize, RowFault),
}

impl JsonRows {
    /// Reads the rows of a request for sets, at most so many. Memory grows with what came, never with what was
    /// announced.
    pub fn read_request(&self, json: &[u8], most: usize) -> Result<Vec<JsonRow>, RequestFault> {
        read(RowsAlone(self), json, most)
    }
}

impl JsonLabel {
    /// Reads the labels of a request, at most so many, in whatever model their rows are.
    pub fn read_request(json: &[u8], most: usize) -> Result<Vec<Self>, RequestFault> {
        read(LabelsAlone, json, most)
    }
}

/// Something that reads one row of a request; the outer error is one of JSON, the inner one of the row.
trait EachRow<'de, R>: Copy + DeserializeSeed<'de, Value = Result<R, RowFault>> {}

impl<'de, R, S: Copy + DeserializeSeed<'de, Value = Result<R, RowFault>>> EachRow<'de, R> for S {}

fn read<'de, R>(each: impl EachRow<'de, R>, json: &'de [u8], most: usize) -> Result<Vec<R>, RequestFault> {
    let wanted = Wanted { each, most, fault: RefCell::new(None), of: PhantomData };
    let mut from = serde_json::Deserializer::from_slice(json);
    let read = (&mut from).deserialize_map(Request(&wanted)).and_then(|rows| from.end().map(|()| rows));
    match (wanted.fault.into_inner(), read) {
        (Some(fault), _) => Err(fault),
        (None, Ok(rows)) => Ok(rows),
        (None, Err(error)) => Err(RequestFault::Json(error.to_string())),
    }
}

struct Wanted<R, S> {
    each: S,
    most: usize,
    /// The first row that cannot be; what comes after it is not read.
    fault: RefCell<Option<RequestFault>>,
    of: PhantomData<R>,
}

struct Request<'a, R, S>(&'a Wanted<R, S>);

impl<'de, R, S: EachRow<'de, R>> Visitor<'de> for Request<'_, R, S> {
    type Value = Vec<R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `rows`")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut rows = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "rows" if rows.is_none() => rows = Some(map.next_value_seed(List(self.0))?),
                "rows" => return Err(M::Error::custom("`rows` occurs twice")),
                other => return Err(M::Error::custom(format_args!("only `rows` is known, not `{other}`"))),
            }
        }
        rows.ok_or_else(|| M::Error::custom("`rows` is missing"))
    }
}

struct List<'a, R, S>(&'a Wanted<R, S>);

impl<'de, R, S: EachRow<'de, R>> DeserializeSeed<'de> for List<'_, R, S> {
    type Value = Vec<R>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, R, S: EachRow<'de, R>> Visitor<'de> for List<'_, R, S> {
    type Value = Vec<R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut rows = Vec::new();
        let stop = |fault| {
            *self.0.fault.borrow_mut() = Some(fault);
            Err(A::Error::custom("a row cannot be read"))
        };
        while let Some(row) = list.next_element_seed(self.0.each)? {
            match row {
                _ if rows.len() == self.0.most => return stop(RequestFault::TooMany(self.0.most)),
                Ok(row) => rows.push(row),
                Err(fault) => return stop(RequestFault::Row(rows.len(), fault)),
            }
        }
        Ok(rows)
    }
}
