//! Named columns as a Parquet file: one row per observation, every column of one type.
//!
//! For the samples behind a result, such as the delay of each message, to be read with pandas,
//! polars or DuckDB. Columns are required (no nulls); words are UTF-8 and dictionary-encoded, so a
//! case name repeated a million times is stored once. Snappy compression, one row group. Left out:
//! nested types and appending to a file.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

/// A table of columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    columns: Vec<(String, Column)>,
}

/// The values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Measured values.
    F64(Vec<f64>),
    /// Signed counts, nanoseconds.
    I64(Vec<i64>),
    /// Small counts and numbers.
    U32(Vec<u32>),
    /// Words: the distinct ones, and for each row the index of the one it has.
    Words {
        /// Distinct words.
        dictionary: Vec<String>,
        /// One index into `dictionary` per row.
        indices: Vec<u32>,
    },
}

/// Why columns cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ColumnsError {
    #[error("column {name} has {rows} rows where the first has {expected}")]
    Ragged {
        /// The first column that differs.
        name: String,
        rows: usize,
        /// The first column's rows.
        expected: usize,
    },
    #[error("column {name} refers to word {index} of a dictionary of {words}")]
    UnknownWord {
        name: String,
        index: u32,
        /// The dictionary's length.
        words: usize,
    },
    #[error("the Parquet file could not be written: {0}")]
    Parquet(#[from] ParquetError),
}

impl Column {
    /// How many rows it has.
    pub fn len(&self) -> usize {
        match self {
            Self::F64(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::U32(values) => values.len(),
            Self::Words { indices, .. } => indices.len(),
        }
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn schema(&self, name: &str) -> Result<TypePtr, ParquetError> {
        let (physical, converted) = match self {
            Self::F64(_) => (PhysicalType::DOUBLE, ConvertedType::NONE),
            Self::I64(_) => (PhysicalType::INT64, ConvertedType::NONE),
            Self::U32(_) => (PhysicalType::INT32, ConvertedType::UINT_32),
            Self::Words { .. } => (PhysicalType::BYTE_ARRAY, ConvertedType::UTF8),
        };
        let column = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_converted_type(converted)
            .build()?;
        Ok(Arc::new(column))
    }
}

impl Columns {
    /// Adds a column at the right; the name carries the unit (`delay_ms`).
    #[must_use]
    pub fn with(mut self, name: &str, column: Column) -> Self {
        self.columns.push((name.to_owned(), column));
        self
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// Writes the columns to `sink` as one Parquet file.
    pub fn write_parquet<W: Write + Send>(&self, sink: W) -> Result<(), ColumnsError> {
        self.check()?;
        let fields = self.columns.iter().map(|(name, column)| column.schema(name));
        let schema = Type::group_type_builder("rows")
            .with_fields(fields.collect::<Result<_, _>>()?)
            .build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut file = SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        for (_, column) in &self.columns {
            write_column(&mut group, column)?;
        }
        group.close()?;
        file.close()?;
        Ok(())
    }

    fn check(&self) -> Result<(), ColumnsError> {
        let expected = self.rows();
        for (name, column) in &self.columns {
            if column.len() != expected {
                let (name, rows) = (name.clone(), column.len());
                return Err(ColumnsError::Ragged { name, rows, expected });
            }
            if let Column::Words { dictionary, indices } = column {
                let words = dictionary.len();
                if let Some(&index) = indices.iter().find(|index| **index as usize >= words) {
                    return Err(ColumnsError::UnknownWord { name: name.clone(), index, words });
                }
            }
        }
        Ok(())
    }
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns than the data".into()));
    };
    match column {
        Column::F64(values) => {
            writer.typed::<DoubleType>().write_batch(values, None, None)?;
        }
        Column::I64(values) => {
            writer.typed::<Int64Type>().write_batch(values, None, None)?;
        }
        Column::U32(values) => {
            // Unsigned by the converted type; stored in the same 32 bits.
            let values: Vec<i32> = values.iter().map(|value| value.cast_signed()).collect();
            writer.typed::<Int32Type>().write_batch(&values, None, None)?;
        }
        Column::Words { dictionary, indices } => {
            let words: Vec<ByteArray> =
                dictionary.iter().map(|word| ByteArray::from(word.as_str())).collect();
            // A ByteArray is a counted reference: rows share the dictionary's bytes.
            let values: Vec<ByteArray> =
                indices.iter().map(|&index| words[index as usize].clone()).collect();
            writer.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        }
    }
    writer.close()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    fn samples() -> Columns {
        Columns::default()
            .with(
                "case",
                Column::Words {
                    dictionary: vec!["qnx-7.0 on 30 ms".into(), "größe".into()],
                    indices: vec![0, 1, 0],
                },
            )
            .with("message", Column::U32(vec![0, 1, u32::MAX]))
            .with("written_ns", Column::I64(vec![0, -5, i64::MAX]))
            .with("delay_ms", Column::F64(vec![0.25, 199.5, 1e-9]))
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut file = Vec::new();
        samples().write_parquet(&mut file).expect("writes to memory");
        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).expect("a Parquet file");
        let rows: Vec<_> = reader
            .get_row_iter(None)
            .expect("rows")
            .map(|row| {
                let row = row.expect("a row");
                let case = row.get_string(0).expect("words").clone();
                let message = row.get_uint(1).expect("unsigned");
                let written = row.get_long(2).expect("signed");
                (case, message, written, row.get_double(3).expect("float"))
            })
            .collect();
        let expect = [
            ("qnx-7.0 on 30 ms".to_owned(), 0, 0, 0.25),
            ("größe".to_owned(), 1, -5, 199.5),
            ("qnx-7.0 on 30 ms".to_owned(), u32::MAX, i64::MAX, 1e-9),
        ];
        assert_eq!(rows, expect);
    }

    #[test]
    fn repeated_words_are_stored_once() {
        let rows = 100_000;
        let columns = Columns::default().with(
            "case",
            Column::Words {
                dictionary: vec!["a name of some length".into()],
                indices: vec![0; rows],
            },
        );
        let mut file = Vec::new();
        columns.write_parquet(&mut file).expect("writes to memory");
        assert!(file.len() < 2_000, "{} bytes", file.len());
    }

    #[test]
    fn columns_of_different_length_are_refused_by_name() {
        let ragged = samples().with("short", Column::F64(vec![1.0]));
        let error = ragged.write_parquet(Vec::new()).expect_err("ragged");
        assert_eq!(error.to_string(), "column short has 1 rows where the first has 3");
    }

    #[test]
    fn an_index_outside_the_dictionary_is_refused() {
        let words = Column::Words { dictionary: vec![], indices: vec![7] };
        let error = Columns::default().with("case", words).write_parquet(Vec::new());
        let error = error.expect_err("no such word").to_string();
        assert_eq!(error, "column case refers to word 7 of a dictionary of 0");
    }

    #[test]
    fn no_rows_are_still_a_file() {
        let mut file = Vec::new();
        let empty = Columns::default().with("delay_ms", Column::F64(vec![]));
        empty.write_parquet(&mut file).expect("writes to memory");
        assert_eq!(&file[..4], b"PAR1");
    }
}
