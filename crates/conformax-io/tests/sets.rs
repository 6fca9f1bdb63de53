//! Prediction sets as files: every format holds the same columns.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use conformax_io::{
    CellType, Cells, ClassNames, Format, NamedCells, Overwrite, PValues, SetColumns, SetRows, SetsWriter,
};

fn names() -> ClassNames {
    ClassNames::new(["cat", "a|b\\c", "d,\"e\""].map(str::to_owned).to_vec()).unwrap()
}

fn write(path: &Path, columns: &SetColumns, rows: &[SetRows<'_>]) {
    let mut writer = SetsWriter::create(path, Overwrite::Refuse, columns).unwrap();
    for rows in rows {
        writer.write(rows).unwrap();
    }
    writer.finish().unwrap();
}

fn full_columns() -> SetColumns {
    SetColumns {
        keep: vec![("id".to_owned(), CellType::Int), ("note".to_owned(), CellType::Text)],
        names: Some(names()),
        probabilities: true,
        p_values: true,
        alpha: true,
    }
}

fn kept() -> Vec<NamedCells> {
    vec![
        NamedCells { name: "id".to_owned(), cells: Cells::Int(vec![Some(7), None]) },
        NamedCells { name: "note".to_owned(), cells: Cells::Text(vec![None, Some("x\ny".to_owned())]) },
    ]
}

fn full_rows(keep: &[NamedCells]) -> SetRows<'_> {
    SetRows {
        first_row: 41,
        keep,
        offsets: &[0, 2, 3],
        labels: &[2, 0, 1],
        probabilities: Some(&[0.75, 0.25, 1.0]),
        p_values: Some(PValues::OfSet(&[0.1 + 0.2, 0.5, 1.0])),
        alphas: Some(&[0.1]),
    }
}

#[test]
fn json_lines_and_csv_read_as_written_here() {
    let folder = tempfile::tempdir().unwrap();
    let (json, csv) = (folder.path().join("sets.jsonl"), folder.path().join("sets.csv"));
    let keep = kept();
    write(&json, &full_columns(), &[full_rows(&keep)]);
    write(&csv, &full_columns(), &[full_rows(&keep)]);
    let expected = concat!(
        r#"{"row":41,"id":7,"note":null,"labels":["d,\"e\"","cat"],"size":2,"probabilities":[0.75,0.25],"#,
        r#""p_values":[0.30000000000000004,0.5],"alpha":0.1}"#,
        "\n",
        r#"{"row":42,"id":null,"note":"x\ny","labels":["a|b\\c"],"size":1,"probabilities":[1.0],"p_values":[1.0],"alpha":0.1}"#,
        "\n"
    );
    assert_eq!(std::fs::read_to_string(json).unwrap(), expected);
    let expected = concat!(
        "row,id,note,labels,size,probabilities,p_values,alpha\n",
        "41,7,,\"d,\"\"e\"\"|cat\",2,0.75|0.25,0.30000000000000004|0.5,0.1\n",
        "42,,\"x\ny\",a\\|b\\\\c,1,1,1,0.1\n"
    );
    assert_eq!(std::fs::read_to_string(csv).unwrap(), expected);
}

fn read_table(path: &Path) -> Vec<RecordBatch> {
    let file = std::fs::File::open(path).unwrap();
    match Format::of_name(path).unwrap() {
        Format::Parquet => {
            let builder =
                parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            builder.build().unwrap().map(Result::unwrap).collect()
        }
        _ => arrow_ipc::reader::FileReader::try_new(file, None).unwrap().map(Result::unwrap).collect(),
    }
}

fn file_schema(path: &Path) -> arrow_schema::SchemaRef {
    let file = std::fs::File::open(path).unwrap();
    match Format::of_name(path).unwrap() {
        Format::Parquet => parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file)
            .unwrap()
            .schema()
            .clone(),
        _ => arrow_ipc::reader::FileReader::try_new(file, None).unwrap().schema(),
    }
}

#[test]
fn parquet_and_arrow_hold_the_documented_columns() {
    let folder = tempfile::tempdir().unwrap();
    let keep = kept();
    for name in ["sets.parquet", "sets.arrow"] {
        let path = folder.path().join(name);
        write(
            &path,
            &full_columns(),
            &[full_rows(&keep), SetRows { first_row: 43, alphas: Some(&[0.05]), ..full_rows(&keep) }],
        );
        let tables = read_table(&path);
        let schema = tables[0].schema();
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(columns, ["row", "id", "note", "labels", "size", "probabilities", "p_values", "alpha"]);
        let rows: Vec<u64> = tables
            .iter()
            .flat_map(|table| table.column(0).as_primitive::<UInt64Type>().values().to_vec())
            .collect();
        assert_eq!(rows, [41, 42, 43, 44]);
        let lists = tables[0].column(3).as_list::<i32>();
        let labels: Vec<_> =
            lists.value(0).as_string::<i32>().iter().map(|name| name.unwrap().to_owned()).collect();
        assert_eq!(labels, ["d,\"e\"", "cat"]);
        assert_eq!(lists.value(1).as_string::<i32>().value(0), "a|b\\c");
        assert_eq!(tables[0].column(4).as_primitive::<UInt32Type>().values()[..2], [2, 1]);
        assert_eq!(
            tables[0].column(6).as_list::<i32>().value(0).as_primitive::<Float64Type>().value(0),
            0.1 + 0.2
        );
        assert!(tables[0].column(1).is_null(1));
        assert!(file_schema(&path).metadata()["class_names"].contains("cat"));
    }
}

#[test]
fn without_names_labels_are_numbers_and_nothing_else_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let rows = SetRows { keep: &[], probabilities: None, p_values: None, alphas: None, ..full_rows(&[]) };
    for name in ["sets.parquet", "sets.arrow"] {
        let path = folder.path().join(name);
        write(&path, &SetColumns::default(), &[rows]);
        let table = read_table(&path).remove(0);
        assert_eq!(table.num_columns(), 3);
        assert_eq!(
            table.column(1).as_list::<i32>().value(0).as_primitive::<UInt32Type>().values()[..],
            [2, 0]
        );
    }
    let path = folder.path().join("sets.jsonl");
    write(&path, &SetColumns::default(), &[rows]);
    assert_eq!(
        std::fs::read_to_string(path).unwrap(),
        "{\"row\":41,\"labels\":[2,0],\"size\":2}\n{\"row\":42,\"labels\":[1],\"size\":1}\n"
    );
}

#[test]
fn p_values_of_all_classes_are_lists_of_their_own_length() {
    let folder = tempfile::tempdir().unwrap();
    let columns = SetColumns { p_values: true, ..SetColumns::default() };
    let all = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
    let rows = SetRows {
        keep: &[],
        probabilities: None,
        p_values: Some(PValues::OfAll(&all)),
        alphas: None,
        ..full_rows(&[])
    };
    let path = folder.path().join("sets.parquet");
    write(&path, &columns, &[rows]);
    let table = read_table(&path).remove(0);
    assert_eq!(
        table.column(3).as_list::<i32>().value(1).as_primitive::<Float64Type>().values()[..],
        [0.4, 0.5, 0.6]
    );
}

/// Full sets over many classes overflow what one batch may hold; nothing is lost at the seams.
#[test]
fn large_sets_are_cut_into_batches() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, classes) = (270usize, 4000usize);
    let offsets: Vec<usize> = (0..=rows).map(|row| row * classes).collect();
    let labels: Vec<u32> = (0..rows * classes).map(|index| (index % classes) as u32).collect();
    let sets = SetRows {
        first_row: 0,
        keep: &[],
        offsets: &offsets,
        labels: &labels,
        probabilities: None,
        p_values: None,
        alphas: None,
    };
    for name in ["sets.parquet", "sets.arrow"] {
        let path = folder.path().join(name);
        write(&path, &SetColumns::default(), &[sets]);
        let tables = read_table(&path);
        assert!(tables.len() > 1 || name == "sets.parquet");
        let numbers: Vec<u64> = tables
            .iter()
            .flat_map(|table| table.column(0).as_primitive::<UInt64Type>().values().to_vec())
            .collect();
        assert_eq!(numbers, (0..rows as u64).collect::<Vec<_>>());
        let sizes: usize = tables.iter().map(|table| table.column(1).as_list::<i32>().values().len()).sum();
        assert_eq!(sizes, rows * classes);
    }
}

#[test]
fn formats_that_hold_no_sets_and_names_that_clash_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, columns: &SetColumns| {
        SetsWriter::create(&folder.path().join(name), Overwrite::Refuse, columns).err().unwrap().to_string()
    };
    assert!(refused("sets.npy", &SetColumns::default()).contains("not as npy"));
    assert!(refused("sets", &SetColumns::default()).contains("its name says no format"));
    let clash = SetColumns { keep: vec![("size".to_owned(), CellType::Int)], ..SetColumns::default() };
    assert!(refused("sets.csv", &clash).contains("`size`"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn levels_follow_one_another_within_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let columns = SetColumns {
        keep: vec![("id".to_owned(), CellType::Int)],
        p_values: true,
        alpha: true,
        ..SetColumns::default()
    };
    let keep = [NamedCells { name: "id".to_owned(), cells: Cells::Int(vec![Some(7), Some(8)]) }];
    let rows = SetRows {
        first_row: 3,
        keep: &keep,
        offsets: &[0, 1, 3, 3, 4],
        labels: &[1, 1, 0, 0],
        probabilities: None,
        p_values: Some(PValues::OfAll(&[0.25, 1.0, 0.5, 0.125])),
        alphas: Some(&[0.5, 0.1]),
    };
    let (csv, parquet) = (folder.path().join("sets.csv"), folder.path().join("sets.parquet"));
    write(&csv, &columns, &[rows]);
    write(&parquet, &columns, &[rows]);
    let expected = concat!(
        "row,id,labels,size,p_values,alpha\n",
        "3,7,1,1,0.25|1,0.5\n",
        "3,7,1|0,2,0.25|1,0.1\n",
        "4,8,,0,0.5|0.125,0.5\n",
        "4,8,0,1,0.5|0.125,0.1\n",
    );
    assert_eq!(std::fs::read_to_string(csv).unwrap(), expected);
    let table = &read_table(&parquet)[0];
    assert_eq!(table.column(0).as_primitive::<UInt64Type>().values().to_vec(), [3, 3, 4, 4]);
    assert_eq!(table.column(5).as_primitive::<Float64Type>().values().to_vec(), [0.5, 0.1, 0.5, 0.1]);
    let p_values = table.column(4).as_list::<i32>().value(3);
    assert_eq!(p_values.as_primitive::<Float64Type>().values().to_vec(), [0.5, 0.125]);
}
