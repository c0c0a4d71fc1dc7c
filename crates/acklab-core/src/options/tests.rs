//! Goal: what is declared is what can be listed, set and read, and what does not fit is refused.

use super::*;
use crate::time::Span;

crate::words! {
    /// A word.
    pub(super) enum Colour {
        /// One.
        Red = "red",
        /// Another.
        Green = "green",
    }
}

crate::options! {
    /// A group.
    #[derive(Copy, PartialEq)]
    pub(super) struct Inner {
        /// Inside.
        depth: u32 as count(1, 9) = "3",
    }
}

crate::options! {
    /// All kinds.
    #[derive(PartialEq)]
    pub(super) struct Outer {
        /// A time that is
        /// two lines long.
        target: Span as positive_span() = "1.5ms",
        /// Maybe.
        jiffy: Option<Span> = "0",
        /// A share.
        weight "w": f64 as positive_share() = "2%",
        /// A flag.
        gentle: bool = "true",
        /// A word.
        colour: Colour = "green",
    }
    beside {
        /// No option.
        room: u32 = 17,
    }
    within {
        /// The group, deeper than it is by itself.
        inner: Inner = Inner { depth: 5 },
    }
    check not_both
}

fn not_both(outer: &Outer) -> Result<(), Conflict> {
    match (outer.gentle, outer.colour) {
        (true, Colour::Red) => Err(Conflict { name: "gentle", reason: "not with red".into() }),
        _ => Ok(()),
    }
}

#[test]
fn defaults_are_those_that_were_declared() {
    let outer = Outer::default();
    assert_eq!((outer.target, outer.jiffy), (Span::from_micros(1500), None));
    assert!((outer.weight - 0.02).abs() < 1e-12 && outer.gentle);
    assert_eq!((outer.colour, outer.room, outer.inner.depth), (Colour::Green, 17, 5));
    let list: Vec<_> = outer
        .list()
        .iter()
        .map(|one| format!("{}={} {}", one.name, one.default, one.doc))
        .collect();
    assert_eq!(list[0], "target=1500us A time that is two lines long.");
    assert_eq!(
        list[2..],
        ["w=0.02 A share.", "gentle=true A flag.", "colour=green A word.", "depth=5 Inside."]
    );
    let names: Vec<_> = Outer::PARAMETERS.iter().map(|one| (one.name, one.default)).collect();
    assert_eq!(names[5], ("depth", "3"));
}

#[test]
fn what_fits_is_set_and_what_does_not_leaves_all_as_it_was() {
    let mut outer = Outer::default();
    assert!(outer.set("jiffy", Value::Span(Span::from_millis(4))));
    assert!(outer.set("depth", Value::Count(7)) && outer.set("colour", Value::Choice("red")));
    assert_eq!((outer.jiffy, outer.inner.depth), (Some(Span::from_millis(4)), 7));
    let before = outer.clone();
    for (name, value) in [
        ("weight", Value::Number(0.5)),
        ("w", Value::Count(1)),
        ("depth", Value::Count(1 << 40)),
        ("colour", Value::Choice("blue")),
    ] {
        assert!(!outer.set(name, value), "{name}");
    }
    assert_eq!(outer, before);
    assert_eq!(outer.check().unwrap_err().name, "gentle");
}

#[test]
fn texts_are_read_within_their_bounds() {
    let check = |kind: Kind, text: &str, expect: Result<Value, &str>| {
        let read = kind.parse(text);
        match expect {
            Ok(value) => assert_eq!(read, Ok(value), "{text}"),
            Err(reason) => assert!(read.clone().unwrap_err().contains(reason), "{text}: {read:?}"),
        }
    };
    check(Kind::Span, "0", Ok(Value::Span(Span::ZERO)));
    check(Kind::PositiveSpan, "0s", Err("longer than 0"));
    check(Kind::Span, "100000s", Err("at most 86400s"));
    check(share(), "5%", Ok(Value::Number(0.05)));
    check(share(), "0", Ok(Value::Number(0.0)));
    check(positive_share(), "0%", Err("above 0"));
    check(share(), "105%", Err("from \"0%\" to \"100%\""));
    check(share(), "NaN", Err("must be a share"));
    check(Kind::Flag, "yes", Err("true or false"));
    check(count(1, 9), "0", Err("from 1 to 9"));
    check(number(0.0, 1.0, ""), "inf", Err("from 0 to 1"));
    check(choice(Colour::NAMES), "blue", Err("one of red, green"));
    assert_eq!(
        "beige".parse::<Colour>().unwrap_err().to_string(),
        "unknown Colour \"beige\"; known: red, green"
    );
}

#[test]
fn lists_are_joined_and_their_defaults_replaced() {
    const BOTH: [Parameter; 7] = joined(Parameter::NONE, &[Inner::PARAMETERS, Outer::PARAMETERS]);
    const OTHER: [Parameter; 7] = with_defaults(&BOTH, &[("w", "50%"), ("depth", "9")]);
    assert_eq!((OTHER[0].default, OTHER[3].default, OTHER[4].default), ("9", "50%", "true"));
    assert_eq!(joined::<_, 3>("", &[&["auto"], Colour::NAMES]), ["auto", "red", "green"]);
}
