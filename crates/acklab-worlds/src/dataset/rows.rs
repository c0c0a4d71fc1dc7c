//! The rows of the files: read with their line numbers, written as they are read.

use std::fmt::{self, Display, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

use acklab_core::segment::Flags;

use super::decimal::Decimal;

/// Something that is wrong with a data set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    /// Where.
    pub path: PathBuf,
    /// In which line, from 1, if it is in one.
    pub line: Option<usize>,
    /// What.
    pub what: String,
}

impl Fault {
    /// In a file as a whole.
    pub fn in_file(path: &Path, what: impl Display) -> Self {
        Self { path: path.to_owned(), line: None, what: what.to_string() }
    }

    /// In a line of it.
    pub fn in_line(path: &Path, line: usize, what: impl Display) -> Self {
        Self { path: path.to_owned(), line: Some(line), what: what.to_string() }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path.display(), self.what),
            None => write!(f, "{}: {}", self.path.display(), self.what),
        }
    }
}

/// A row of one of the files.
pub trait Row: Sized + Display {
    /// Its columns in words.
    const COLUMNS: &'static str;

    /// From its words.
    fn parse(words: &[&str]) -> Result<Self, String>;
}

/// A row of a file and its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbered<R> {
    /// From 1.
    pub line: usize,
    /// The row.
    pub row: R,
}

/// A file's rows. Empty lines, and a heading in the first, are passed over.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<R> {
    /// Where it is from.
    pub path: PathBuf,
    /// In order.
    pub rows: Vec<Numbered<R>>,
}

impl<R: Row> Table<R> {
    /// Reads the file; what cannot be read goes to `faults`.
    pub fn read(path: &Path, faults: &mut Vec<Fault>) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| {
            faults.push(Fault::in_file(path, error));
            String::new()
        });
        let mut rows = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let words: Vec<&str> = text.split_whitespace().collect();
            let is_heading =
                line == 1 && words.first().is_some_and(|word| word.parse::<Decimal>().is_err());
            if words.is_empty() || is_heading {
                continue;
            }
            match R::parse(&words) {
                Ok(row) => rows.push(Numbered { line, row }),
                Err(what) => {
                    let what = format!("{what}; a line is: {}", R::COLUMNS);
                    faults.push(Fault::in_line(path, line, what));
                }
            }
        }
        Self { path: path.to_owned(), rows }
    }

    /// The rows alone.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &R> {
        self.rows.iter().map(|numbered| &numbered.row)
    }

    /// A fault in the line of row `index`.
    pub fn fault(&self, index: usize, what: impl Display) -> Fault {
        match self.rows.get(index) {
            Some(row) => Fault::in_line(&self.path, row.line, what),
            None => Fault::in_file(&self.path, what),
        }
    }
}

/// The text of rows.
pub(super) fn text<R: Row>(rows: impl IntoIterator<Item = R>) -> String {
    rows.into_iter().fold(String::new(), |mut text, row| {
        let _ = writeln!(text, "{row}");
        text
    })
}

fn number<N: std::str::FromStr>(word: &str) -> Result<N, String> {
    word.parse().map_err(|_| format!("{word:?} is no number that fits here"))
}

fn columns<'w, const N: usize>(words: &[&'w str]) -> Result<[&'w str; N], String> {
    <[&str; N]>::try_from(words).map_err(|_| format!("{} columns in place of {N}", words.len()))
}

/// When the application made a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// From 1.
    pub id: u64,
    /// s.
    pub at: Decimal,
}

impl Row for Made {
    const COLUMNS: &'static str = "ID Ts";

    fn parse(words: &[&str]) -> Result<Self, String> {
        let [id, at] = columns(words)?;
        Ok(Self { id: number(id)?, at: at.parse()? })
    }
}

impl Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.at)
    }
}

/// A segment that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sniffed {
    /// s.
    pub at: Decimal,
    /// Address and port, with a point between them: source, destination.
    pub ends: [String; 2],
    /// Letters, in brackets.
    pub flags: String,
    /// Payload, bytes.
    pub length: u64,
}

impl Row for Sniffed {
    const COLUMNS: &'static str = "Ts SrcIPAddr.SrcPortNo DstIPAddr.DstPortNo [Flags] length n";

    /// What tcpdump(8) puts between them is let pass.
    fn parse(words: &[&str]) -> Result<Self, String> {
        let words: Vec<&str> = words
            .iter()
            .map(|word| word.trim_end_matches([',', ':']))
            .filter(|word| !["IP", ">", "Flags"].contains(word))
            .collect();
        let [at, from, to, flags, length, bytes] = columns(&words)?;
        if length != "length" {
            return Err(format!("{length:?} where \"length\" should be"));
        }
        if !(flags.starts_with('[') && flags.ends_with(']')) {
            return Err(format!("{flags:?} is no [Flags]"));
        }
        let ends = [from, to].map(str::to_owned);
        Ok(Self { at: at.parse()?, ends, flags: flags.to_owned(), length: number(bytes)? })
    }
}

impl Display for Sniffed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, ends: [from, to], flags, length } = self;
        write!(f, "{at} {from} {to} {flags} length {length}")
    }
}

/// TCP flags in the article's letters.
pub(super) fn letters(flags: Flags) -> String {
    let named = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::ACK, 'A'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'C'),
    ];
    let set = named.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, letter)| letter);
    format!("[{}]", set.collect::<String>())
}

/// When a message left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// s.
    pub at: Decimal,
    /// Bytes.
    pub length: u64,
}

impl Row for Left {
    const COLUMNS: &'static str = "Ts Len";

    fn parse(words: &[&str]) -> Result<Self, String> {
        let [at, length] = columns(words)?;
        Ok(Self { at: at.parse()?, length: number(length)? })
    }
}

impl Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.length)
    }
}

/// A message's way through the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// When it was made.
    pub made: Made,
    /// When it left.
    pub left: Left,
    /// us.
    pub delay: Decimal,
}

impl Waited {
    /// Of a message that was made and left.
    pub fn new(made: Made, left: Left) -> Self {
        Self { made, left, delay: left.at.minus(made.at).times_ten_to(6) }
    }
}

impl Row for Waited {
    const COLUMNS: &'static str = "ID Ts Ts Len Delay";

    fn parse(words: &[&str]) -> Result<Self, String> {
        let [id, made, left, length, delay] = columns(words)?;
        let made = Made { id: number(id)?, at: made.parse()? };
        let left = Left { at: left.parse()?, length: number(length)? };
        Ok(Self { made, left, delay: delay.parse()? })
    }
}

impl Display for Waited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.made, self.left, self.delay)
    }
}

/// A delay of one of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The message's number in its run.
    pub id: u64,
    /// us.
    pub delay: Decimal,
}

impl Row for Delay {
    const COLUMNS: &'static str = "ID Delay";

    fn parse(words: &[&str]) -> Result<Self, String> {
        let [id, delay] = columns(words)?;
        Ok(Self { id: number(id)?, delay: delay.parse()? })
    }
}

impl Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.delay)
    }
}

/// A point of the distribution function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// ms.
    pub delay: Decimal,
    /// Share of delays that are no longer.
    pub share: Decimal,
}

impl Row for Point {
    const COLUMNS: &'static str = "Delay CDF";

    fn parse(words: &[&str]) -> Result<Self, String> {
        let [delay, share] = columns(words)?;
        Ok(Self { delay: delay.parse()?, share: share.parse()? })
    }
}

impl Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.delay, self.share)
    }
}
