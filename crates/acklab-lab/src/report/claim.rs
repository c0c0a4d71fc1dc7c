//! A paper's sentences about its results, and what became of each when the paper was run again.

use super::table::Column;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Holds,
    /// It does not.
    Fails,
    /// The replications do not decide it.
    Open,
}

impl Outcome {
    /// The outcome of a comparison that is decided.
    pub const fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }

    /// Fails if one fails, is open if one is open.
    pub fn all(outcomes: impl IntoIterator<Item = Self>) -> Self {
        outcomes.into_iter().fold(Self::Holds, |so_far, outcome| match (so_far, outcome) {
            (Self::Fails, _) | (_, Self::Fails) => Self::Fails,
            (Self::Open, _) | (_, Self::Open) => Self::Open,
            _ => Self::Holds,
        })
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Open => "open",
        }
    }
}

/// A sentence of a paper, in our words, judged under each reading of what the paper leaves open.
#[derive(Clone, Debug)]
pub struct Claim {
    pub place: &'static str,
    pub text: &'static str,
    /// Whether it holds, reading by reading.
    pub outcomes: Vec<Outcome>,
    /// What that rests on, the paper's figures where it prints them and ours: for each reading, or once for
    /// all.
    pub figures: Vec<String>,
}

impl Claim {
    /// Where the claims stand.
    pub fn places(claims: &[Self]) -> Column {
        Column::text("Section").key("place").over(claims, |claim| claim.place)
    }

    /// What they say.
    pub fn texts(claims: &[Self]) -> Column {
        let column = Column::text("Claim, in our words").key("claim").plain("claim", 0);
        column.over(claims, |claim| claim.text)
    }

    /// Whether they hold under the reading of this number and name.
    pub fn outcomes(claims: &[Self], reading: usize, name: &str) -> Column {
        let column = Column::text(name).key("outcome").plain(name, 0);
        column.over(claims, |claim| claim.outcomes[reading].word())
    }

    /// What that rests on.
    pub fn figures(claims: &[Self], reading: usize) -> Column {
        let column = Column::text("Figures").key("figures");
        column.over(claims, |claim| claim.figures[reading].as_str())
    }

    /// How many hold under which reading: "3 with one, 2 with another" if `with` is "with".
    pub fn held(claims: &[Self], readings: &[&str], with: &str) -> String {
        let count = |(reading, name): (usize, &&str)| {
            let held = claims.iter().filter(|claim| claim.outcomes[reading] == Outcome::Holds);
            format!("{} {with} {name}", held.count())
        };
        readings.iter().enumerate().map(count).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Fails, Holds, Open};

    #[test]
    fn one_that_fails_outweighs_what_is_open_and_that_what_holds() {
        for (outcomes, all) in
            [(vec![], Holds), (vec![Holds, Open, Holds], Open), (vec![Open, Fails, Holds], Fails)]
        {
            assert_eq!(Outcome::all(outcomes.clone()), all, "{outcomes:?}");
        }
    }

    #[test]
    fn what_holds_is_counted_reading_by_reading() {
        let claim = |outcomes: [Outcome; 2]| Claim {
            place: "",
            text: "",
            outcomes: outcomes.into(),
            figures: vec![],
        };
        let claims = [claim([Holds, Fails]), claim([Holds, Open]), claim([Fails, Holds])];
        assert_eq!(
            Claim::held(&claims, &["plain", "literal"], "under"),
            "2 under plain, 1 under literal"
        );
    }
}
