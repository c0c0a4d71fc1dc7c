//! The unit in which a column is read.

/// A unit that is read, and what it makes of a value in JSON's unit.
#[derive(Clone, Debug)]
pub struct Unit {
    name: String,
    of: fn(f64) -> f64,
}

impl Unit {
    /// A share as percent; the name says of what: "% of runs".
    pub fn percent(name: &str) -> Self {
        Self { name: name.into(), of: |share| 100.0 * share }
    }

    /// A thousand of JSON's unit.
    pub fn kilo(name: &str) -> Self {
        Self { name: name.into(), of: |value| value / 1e3 }
    }

    /// A million of it.
    pub fn mega(name: &str) -> Self {
        Self { name: name.into(), of: |value| value / 1e6 }
    }

    pub(in crate::report) fn name(&self) -> &str {
        &self.name
    }

    /// `value` in this unit.
    pub(in crate::report) fn of(&self, value: f64) -> f64 {
        (self.of)(value)
    }
}

/// JSON's unit; no name for plain numbers.
impl From<&str> for Unit {
    fn from(name: &str) -> Self {
        Self { name: name.into(), of: |value| value }
    }
}
