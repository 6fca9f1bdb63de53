//! Every kind of calibration file comes back from its text as it was, and is what the schema and the page document.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use conformax::{
    Alpha, Calibrator, Choose, Dealer, Generator, Logits, Loss, Masked, Prior, Remember, RowSet, Scheme,
    ScoreSpec, Taxonomy, Tuner, cluster_classes, entmax_grid,
};
use conformax_io::{Beside, Calibrating, ClassNames, Model, SelectionRecord};
use serde_json::Value;

const CLASSES: usize = 4;
const ROWS: usize = 240;

struct Rows {
    logits: Vec<f64>,
    labels: Vec<u32>,
    groups: Vec<u32>,
    weights: Vec<f64>,
}

impl Rows {
    fn new(seed: u64) -> Self {
        let mut random = Generator::new(seed, "rows");
        let logits = (0..ROWS * CLASSES).map(|_| random.below(60_000) as f64 / 10_000.0).collect();
        let labels = (0..ROWS).map(|row| (row % CLASSES) as u32).collect();
        let groups = (0..ROWS).map(|row| (row % 3) as u32).collect();
        let weights = (0..ROWS).map(|_| 0.5 + random.below(16) as f64 / 16.0).collect();
        Self { logits, labels, groups, weights }
    }

    fn all(&self) -> Logits<'_, f64> {
        let logits = Logits::new(&self.logits, CLASSES).unwrap();
        logits.with_groups(&self.groups).unwrap().with_weights(&self.weights).unwrap()
    }
}

fn alphas() -> [Alpha; 2] {
    [0.1, 0.05].map(|alpha| Alpha::new(alpha).unwrap())
}

fn calibrator(scheme: Scheme) -> Calibrator<ScoreSpec> {
    let calibrator = Calibrator::new(ScoreSpec::default(), CLASSES).unwrap().under(scheme).unwrap();
    calibrator.remembering(Remember::Rows)
}

fn calibrated(mut calibrator: Calibrator<ScoreSpec>) -> Model {
    let rows = Rows::new(1);
    calibrator.extend(rows.all().labelled(&rows.labels).unwrap()).unwrap();
    Model::new(&calibrator.finish().unwrap(), &alphas(), None)
}

/// Clusters that other rows found; the last class is of none.
fn found_clusters() -> Scheme {
    let rows = Rows::new(2);
    let mut of_class = calibrator(Scheme::Groups(Taxonomy::Label));
    of_class.extend(rows.all().labelled(&rows.labels).unwrap()).unwrap();
    let mut clusters = cluster_classes(of_class.finish().unwrap().groups(), 2, 9, 0).unwrap();
    clusters[CLASSES - 1] = None;
    let first = clusters[0];
    clusters[1] = Some(1 - first.unwrap());
    Scheme::Groups(Taxonomy::Cluster(clusters))
}

fn truncated() -> Model {
    let rows = Rows::new(3);
    let mut dealer = Dealer::new(ScoreSpec::default(), CLASSES, Choose::Ranks).unwrap();
    dealer.extend(rows.all().labelled(&rows.labels).unwrap()).unwrap();
    Calibrating::Dealt(dealer).model(&alphas(), None).unwrap()
}

fn selected() -> Model {
    let rows = Rows::new(1);
    let grid = entmax_grid().into_iter().map(ScoreSpec::Entmax).collect();
    let mut tuner = Tuner::new(grid, CLASSES, alphas()[0]).unwrap().remembering(Remember::Rows);
    tuner.extend(rows.all().labelled(&rows.labels).unwrap()).unwrap();
    let mut pairs = tuner.finish_selecting().unwrap();
    pairs.extend(rows.all().labelled(&rows.labels).unwrap()).unwrap();
    let (selection, wins) = pairs.finish().unwrap();
    Model::of_selection(SelectionRecord { selection, wins: Some(wins) }, None)
}

/// The model with something else in it.
fn with(mut model: Model, change: impl FnOnce(&mut Model)) -> Model {
    change(&mut model);
    model
}

/// A model of every promise there is, by name.
fn every_kind() -> Vec<(&'static str, Model)> {
    let under = |scheme| calibrated(calibrator(scheme));
    let column = |column: &str, groups: &[&str]| Beside {
        column: Some(column.to_owned()),
        groups: groups.iter().map(|name| (*name).to_owned()).collect(),
        ..Beside::default()
    };
    let names = ClassNames::new(["a", "b", "c", "d"].map(str::to_owned).to_vec()).unwrap();
    let delta = Alpha::new(0.2).unwrap();
    let plain = || under(Scheme::default());
    let by_class = || under(Scheme::Groups(Taxonomy::Label));
    let beside = |model: Model, beside: Beside| with(model, |model| model.beside = beside);
    let by_group =
        || beside(under(Scheme::Groups(Taxonomy::Group(3))), column("region", &["east", "north", "west"]));
    let given = || under(Scheme::Groups(Taxonomy::Cluster(vec![Some(0), Some(0), Some(1), Some(1)])));
    let (clusters, estimated) = (vec!["pets".to_owned(), "wild".to_owned()], true);
    let prior = Prior::new(vec![0.1, 0.2, 0.3, 0.4]).unwrap();
    let costs = (0..16).map(|place| if place % 5 == 0 { 0.0 } else { 1.0 + f64::from(place) }).collect();
    vec![
        ("plain", with(plain(), |model| model.names = Some(names))),
        ("masked", calibrated(calibrator(Scheme::default()).with_masked(Masked::Never))),
        ("thresholds alone", with(plain(), |model| model.evidence = None)),
        ("prior", with(plain(), |model| model.prior = Some(prior))),
        ("pac", plain().with_delta(delta).unwrap()),
        ("by class", by_class()),
        ("by class, pac", by_class().with_delta(delta).unwrap()),
        ("by group", by_group()),
        ("by group, pac", by_group().with_delta(delta).unwrap()),
        (
            "clusters found",
            with(under(found_clusters()), |model| model.choosing_rows = Some(RowSet::new(vec![1, 2]))),
        ),
        ("clusters given", beside(given(), Beside { clusters, ..Beside::default() })),
        ("ranks", truncated()),
        ("weights of rows", beside(under(Scheme::RowWeights), column("weight", &[]))),
        (
            "weights of labels",
            beside(
                under(Scheme::LabelWeights(vec![0.5, 1.0, 1.5, 2.0])),
                Beside { estimated, ..Beside::default() },
            ),
        ),
        ("severity", under(Scheme::Risk(Loss::severity(vec![1.0, 0.5, 2.0, 1.0]).unwrap()))),
        ("cost", under(Scheme::Risk(Loss::cost(costs, CLASSES).unwrap()))),
        ("selection", selected()),
    ]
}

#[test]
fn every_kind_of_model_comes_back_as_it_was() {
    let rows = Rows::new(4);
    for (kind, model) in every_kind() {
        let text = model.to_json().unwrap_or_else(|problem| panic!("{kind}: {problem}"));
        let back = Model::from_json(&text).unwrap_or_else(|problem| panic!("{kind}: {problem}"));
        assert_eq!(back, model, "{kind}");
        assert_eq!(back.to_json().unwrap(), text, "{kind}");
        assert_eq!(back.promise_and_limits(), model.promise_and_limits(), "{kind}");
        for (kept, wanted) in back.levels.iter().zip(&model.levels) {
            let sets = |model: &Model, kept| model.predictor(kept).predict(rows.all()).unwrap();
            assert_eq!(sets(&back, kept), sets(&model, wanted), "{kind}");
        }
    }
}

#[test]
fn every_kind_of_file_is_what_the_schema_says() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../docs/calibration-file.schema.json")).unwrap();
    let page = include_str!("../../../docs/calibration-file.md");
    for (kind, model) in every_kind() {
        let file: Value = serde_json::from_str(&model.to_json().unwrap()).unwrap();
        fits(&schema, &schema, &file).unwrap_or_else(|why| panic!("{kind}: {why}"));
        for key in file.as_object().unwrap().keys() {
            assert!(page.contains(&format!("| `{key}` |")), "{kind}: the page lacks {key}");
        }
        if let Some(by) = file["rule"]["by"].as_str() {
            assert!(page.contains(&format!("| `{by}` |")), "{kind}: the page lacks the rule {by}");
        }
        let mut odd = file.clone();
        odd["levels"][0]["colour"] = "red".into();
        assert!(fits(&schema, &schema, &odd).is_err(), "{kind}");
    }
}

/// Whether a value is as a schema has it, by the words of JSON Schema that ours uses, but for patterns of text.
fn fits(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(place) = schema["$ref"].as_str() {
        return fits(root, root.pointer(place.trim_start_matches('#')).unwrap(), value);
    }
    let refuse = |why: String| Err(format!("{why}: {value}"));
    let alternatives = |word: &str| schema[word].as_array().map(Vec::as_slice).unwrap_or_default();
    let fitting =
        |word: &str| alternatives(word).iter().filter(|schema| fits(root, schema, value).is_ok()).count();
    if !alternatives("anyOf").is_empty() && fitting("anyOf") == 0 {
        return refuse("it is none of several".to_owned());
    }
    if !alternatives("oneOf").is_empty() && fitting("oneOf") != 1 {
        return refuse(format!("it is {} of those that exclude each other", fitting("oneOf")));
    }
    if !schema["const"].is_null() && schema["const"] != *value {
        return refuse(format!("it is not {}", schema["const"]));
    }
    if !schema["enum"].is_null() && !alternatives("enum").contains(value) {
        return refuse(format!("it is none of {}", schema["enum"]));
    }
    if !schema["type"].is_null() && !is_of_type(&schema["type"], value) {
        return refuse(format!("its type is not {}", schema["type"]));
    }
    if let Some(number) = value.as_f64() {
        let bound = |word: &str, holds: fn(f64, f64) -> bool| {
            schema[word].as_f64().is_none_or(|bound| holds(number, bound))
        };
        let inside = bound("minimum", |a, b| a >= b)
            && bound("maximum", |a, b| a <= b)
            && bound("exclusiveMinimum", |a, b| a > b)
            && bound("exclusiveMaximum", |a, b| a < b);
        if !inside {
            return refuse("it is out of bounds".to_owned());
        }
    }
    if let Some(items) = value.as_array() {
        if (items.len() as u64) < schema["minItems"].as_u64().unwrap_or(0) {
            return refuse("it has too few items".to_owned());
        }
        if !schema["items"].is_null() {
            items.iter().try_for_each(|item| fits(root, &schema["items"], item))?;
        }
    }
    if let Some(members) = value.as_object() {
        let absent = alternatives("required").iter().find(|key| !members.contains_key(key.as_str().unwrap()));
        if let Some(key) = absent {
            return refuse(format!("it lacks {key}"));
        }
        for (key, member) in members {
            match (&schema["properties"][key], &schema["additionalProperties"]) {
                (Value::Null, Value::Bool(false)) => return refuse(format!("it may have no {key}")),
                (Value::Null, _) => {}
                (schema, _) => fits(root, schema, member).map_err(|why| format!("{key}: {why}"))?,
            }
        }
    }
    Ok(())
}

fn is_of_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("the schema has the type {other}"),
    };
    match wanted {
        Value::Array(several) => several.iter().any(|name| is(name.as_str().unwrap())),
        one => is(one.as_str().unwrap()),
    }
}
