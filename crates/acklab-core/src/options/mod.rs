//! What can be chosen, declared once: kinds of values, words, and sets of options.
//!
//! [`words!`](crate::words) declares an enum whose variants have names, [`options!`](crate::options!) a
//! struct whose fields have names, bounds, defaults and documentation. Whoever lets a user choose (a
//! command line, a file, the words of a link) reads that declaration through [`Options`] and knows
//! nothing of the struct; whoever uses the choice has a typed field and knows nothing of names.

mod kind;
mod macros;
mod registry;
mod row;
mod typed;

pub use kind::{
    Kind, LONGEST, Value, choice, count, number, positive_share, positive_span, share, spells,
};
pub(crate) use registry::{dispatched, registry};
pub use row::Row;
pub use typed::{Typed, Unknown, Word};

/// One thing that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter<D = &'static str> {
    /// Its name, as in `--set name=value` or as a key of a file.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// What it is where nothing is chosen: a text, or a value.
    pub default: D,
    /// What it does, one or two sentences.
    pub doc: &'static str,
}

impl Parameter {
    /// A place for one, in a constant.
    pub const NONE: Self = Self { name: "", kind: Kind::Flag, default: "", doc: "" };
}

impl<D> Parameter<D> {
    /// The same with another default.
    pub fn with_default<E>(&self, default: E) -> Parameter<E> {
        Parameter { name: self.name, kind: self.kind, default, doc: self.doc }
    }
}

/// Why values do not go together, each of which is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The option to change.
    pub name: &'static str,
    /// What is wrong.
    pub reason: String,
}

/// A set of options; [`options!`](crate::options!) writes this.
pub trait Options {
    /// All of them with their present values.
    fn list(&self) -> Vec<Parameter<Value>>;

    /// Gives the option called `name` a value; `false`: there is none of that name and kind.
    fn set(&mut self, name: &str, value: Value) -> bool;

    /// Whether the values go together.
    fn check(&self) -> Result<(), Conflict> {
        Ok(())
    }
}

/// Several lists as one, in a constant; `fill` is overwritten.
///
/// # Panics
/// If `N` is not the sum of their lengths: a declaration that does not compile.
pub const fn joined<T: Copy, const N: usize>(fill: T, lists: &[&[T]]) -> [T; N] {
    let mut all = [fill; N];
    let (mut at, mut list) = (0, 0);
    while list < lists.len() {
        let mut index = 0;
        while index < lists[list].len() {
            all[at] = lists[list][index];
            at += 1;
            index += 1;
        }
        list += 1;
    }
    assert!(at == N, "as many places as there are in the lists");
    all
}

/// The same parameters with other defaults for some.
///
/// # Panics
/// If a name is not among them: a declaration that does not compile, where this is a constant.
pub const fn with_defaults<const N: usize>(
    parameters: &[Parameter],
    defaults: &[(&str, &'static str)],
) -> [Parameter; N] {
    let mut all = joined(Parameter::NONE, &[parameters]);
    let mut next = 0;
    while next < defaults.len() {
        let mut index = 0;
        while !same(all[index].name, defaults[next].0) {
            index += 1;
        }
        all[index].default = defaults[next].1;
        next += 1;
    }
    all
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

#[cfg(test)]
mod tests;
