//! Diagnoses of conversations of programs that nobody here wrote, with every call as strace saw it (`make truth-programs`).
//!
//! Both have ACKs that ride on data. A terminal's server echoes each key at once, several where several came: it holds nothing, though what
//! it says leaves with the ACK of what it said before. A client that writes requests at random times does, and each
//! segment carries what gathered in a round trip.

use std::path::Path;

use acklab_worlds::truth::damage::Damage;
use acklab_worlds::truth::score::{Outcome, View, judge};
use acklab_worlds::truth::store::{Kept, VANTAGES};

fn outcomes(name: &str) -> Vec<Outcome> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    let kept = Kept::read(&folder).expect("a case");
    let views = (0..VANTAGES.len()).map(|vantage| View { vantage, damage: Damage::Clean });
    views.map(|view| judge(&kept, view).expect("a diagnosis")).collect()
}

#[test]
fn a_terminal_is_held_and_its_echoes_are_not() {
    for one in outcomes("typing_30ms") {
        assert_eq!(one.verdict, Some(true), "{one:?}");
        assert!(one.found * 10 >= one.holds * 9, "{one:?}");
        assert!(one.right * 100 >= one.claims * 85, "{one:?}");
    }
}

#[test]
fn requests_that_gather_behind_answers_are_held() {
    for one in outcomes("redis-pipelined_30ms") {
        assert_eq!(one.verdict, Some(true), "{one:?}");
        assert!(one.found * 10 >= one.holds * 9, "{one:?}");
        assert!(one.right * 100 >= one.claims * 95, "{one:?}");
    }
}
