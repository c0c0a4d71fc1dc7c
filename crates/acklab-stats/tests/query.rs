//! Goal: queries are read as the grammar says, errors say where and how to mend, no text panics.
//! Method: tables of queries and errors; arbitrary texts; printing and parsing again.

use acklab_stats::query::{
    Binary, Bound, Expression, Filter, Function, Limit, Measure, Path, Query, Reduction,
    SignalName, Span, Unary, Value, Window, Within, parse,
};
use acklab_stats::{Procedure, Settings, Verdict};
use proptest::prelude::*;

/// The canonical text of a query.
fn canonical(text: &str) -> String {
    parse(text).unwrap_or_else(|error| panic!("{error}")).to_string()
}

#[test]
fn queries_of_uppaal_are_read() {
    for (text, expect) in [
        ("Pr[<=30](<> itae > 8727)", "Pr[<=30](<> itae > 8727)"),
        ("Pr [ <= 30 ] ( <>itae>8727 ) ;", "Pr[<=30](<> itae > 8727)"),
        ("Pr[<=500ms; 100]([] queue.length<=18)", "Pr[<=0.5; 100]([] queue.length <= 18)"),
        ("Pr[#<=10](<> x > 0)", "Pr[#<=10](<> x > 0)"),
        ("Pr[cost<=1e3](<> x > 0)", "Pr[cost<=1000](<> x > 0)"),
        ("Pr[<=1min](p > 0 U q > 0)", "Pr[<=60](p > 0 U q > 0)"),
        ("Pr[<=9](p > 0 U[1,2s] q > 0)", "Pr[<=9](p > 0 U[1,2] q > 0)"),
        ("Pr[<=9](<>[1,2] p > 0) <= .5", "Pr[<=9](<>[1,2] p > 0) <= 0.5"),
        ("Pr[<=9]([][0,2] p > 0) >= 0.95", "Pr[<=9]([][0,2] p > 0) >= 0.95"),
        ("Pr[<=9](<> p>0) >= Pr[<=8](<> q>0)", "Pr[<=9](<> p > 0) >= Pr[<=8](<> q > 0)"),
        ("Pr[<=9](<> p>0) <= Pr[<=8](<> q>0)", "Pr[<=8](<> q > 0) >= Pr[<=9](<> p > 0)"),
        ("E[<=30; 100](max: flow[2].cwnd)", "E[<=30; 100](max: flow[2].cwnd)"),
        ("E[<=30;100] (min: abs(a - b))", "E[<=30; 100](min: abs(a - b))"),
        ("E[<=9](share[1,9] per n:x>1)<=5e-2", "E[<=9](share[1,9] per n: x > 1) <= 0.05"),
        ("E[<=9](quantile(.95): x)", "E[<=9](quantile(0.95): x)"),
        ("E[<=9; 5](last: x + 1)", "E[<=9; 5](last: x + 1)"),
        ("E[<=9](sum per n: x)", "E[<=9](sum per n: x)"),
        ("quantile [<=9; 80] (0.9, max: x)", "quantile[<=9; 80](0.9, max: x)"),
        ("S[<=600](avg[60,600]: x)", "S[<=600](avg[60,600]: x)"),
        ("simulate [<=10] { x }", "simulate [<=10] {x}"),
        ("simulate[<=10;100]{x,y+z}:2:x>1", "simulate [<=10; 100] {x, y + z} : 2 : x > 1"),
        ("simulate [<=10] {x} : x > 1", "simulate [<=10] {x} : x > 1"),
        (
            "Pr[<=1](<> not (a>0 and b>0) or c>0 imply d>0)",
            "Pr[<=1](<> !(a > 0 && b > 0) || c > 0 imply d > 0)",
        ),
        (
            "Pr[<=1](<> a - (b - c) * -2 / d % 3 != max(1, b, fabs(c)))",
            "Pr[<=1](<> a - (b - c) * -2 / d % 3 != max(1, b, abs(c)))",
        ),
        ("Pr[<=1](<> // a comment\n x\n > 1)", "Pr[<=1](<> x > 1)"),
        ("Pr[<=1](<> (x > 1) == true)", "Pr[<=1](<> x > 1 == true)"),
    ] {
        assert_eq!(canonical(text), expect, "{text}");
        assert_eq!(canonical(expect), expect);
    }
}

#[test]
fn precedence_is_that_of_c() {
    let value = |text: &str| {
        let text = format!("Pr[<=1](<> {text})");
        let bound = parse(&text).and_then(|query| query.bind(&text, &["x"]));
        let mut monitor = bound.unwrap_or_else(|error| panic!("{error}")).monitor(0);
        monitor.observe(0.0, &[3.0]);
        monitor.verdict() == Verdict::Holds
    };
    for (text, expect) in [
        ("1 + 2 * x == 7", true),
        ("(1 + 2) * x == 9", true),
        ("10 - 4 - x == 3", true),
        ("-x + 5 == 2", true),
        ("7 % 4 * 2 == 6", true),
        ("true || false && false", true),
        ("(true || false) && false", false),
        ("false imply false imply false", true),
        ("(false imply false) imply false", false),
        ("1 < 2 == true", true),
        ("!(x > 2) || min(x, 5, 2) == 2", true),
        ("abs(-x) >= max(x, 1)", true),
        ("0/0 > 1 || 0/0 <= 1 || 0/0 == 0/0", false),
    ] {
        assert_eq!(value(text), expect, "{text}");
    }
}

#[test]
fn errors_say_what_where_and_how_to_mend() {
    for (text, line, column, what, mend) in [
        (
            "",
            1,
            1,
            "expected `Pr`, `E`, `quantile`, `S` or `simulate`, found",
            "Pr[<=30](<> itae > 8727)",
        ),
        ("P[<=30](<> x > 1)", 1, 1, "found `P`", "write Pr[<=30]"),
        ("Pr(<> x > 1)", 1, 3, "expected `[`, found `(`", "how long a run is"),
        ("Pr[<30](<> x > 1)", 1, 4, "expected `<=`, found `<`", "[<=30]"),
        ("Pr[<=-3](<> x > 1)", 1, 7, "cannot be negative", "[<=30]"),
        ("Pr[<=30 fortnights](<> x > 1)", 1, 9, "expected `]`", "close the bound's bracket"),
        ("Pr[<=30h](<> x > 1)", 1, 8, "`h` is not a unit of time", "us, ms, s or min"),
        ("Pr[<=30;0](<> x > 1)", 1, 9, "a number of runs, found 0", "from 1"),
        ("Pr[<=30;1.5](<> x > 1)", 1, 9, "a number of runs, found 1.5", "whole number"),
        ("Pr[<=30] <> x > 1", 1, 10, "expected `(`, found `<>`", "brackets"),
        ("Pr[<=30](x > 1)", 1, 10, "does not say when", "<> before it"),
        ("Pr[<=30](<> x > 1", 1, 18, "expected `)`, found the end", "close the bracket"),
        ("Pr[<=30](<> itae)", 1, 13, "`itae` is a number where a condition", "itae > 0"),
        ("Pr[<=30](<> x = 1)", 1, 15, "`=` is not an operator", "write =="),
        ("Pr[<=30](<> x > 1 && y)", 1, 22, "where `&&` takes a condition", "y > 0"),
        ("Pr[<=30](<> (x > 1) + 2 > 3)", 1, 13, "where `+` takes a number", "&& and ||"),
        ("Pr[<=30](<> !x)", 1, 14, "where `!` takes a condition", "in brackets"),
        ("Pr[<=30](<> x > 3ms)", 1, 17, "only in bounds", "signal's own unit"),
        ("Pr[<=30](<>\n x >\n\n)", 4, 1, "expected a signal, a number", "queue.length"),
        ("Pr[<=30](<> flow[i].cwnd > 1)", 1, 18, "expected an index, found `i`", "flow[0]"),
        ("Pr[<=30](<> sin(x) > 1)", 1, 13, "`sin` is not a function", "abs, min and max"),
        ("Pr[<=30](<> abs(x, y) > 1)", 1, 13, "takes one argument", "abs(x)"),
        ("Pr[<=30](<> x > 1) >= 1.5", 1, 23, "1.5 is not a probability", "0 to 1"),
        ("Pr[<=30](<> x > 1) > 0.5", 1, 20, "cannot be tested with `>`", ">= or <="),
        ("Pr[<=30](<>[5,2] x > 1)", 1, 12, "ends before it begins", "[10,20]"),
        ("E[<=30](x)", 1, 9, "expected max, min, last, avg, share", "max: queue.length"),
        ("E[<=30](max per n: x)", 1, 13, "`max` weighs nothing", "after avg, share, sum"),
        ("E[<=30](share: x)", 1, 16, "where a condition", "x > 0"),
        ("E[<=30](avg: x) <= 0.5", 1, 17, "only the mean of a share", "share: queue.length"),
        ("E[<=30](share: x > 1) == 0", 1, 23, "a mean cannot be tested", ">= or <="),
        ("E[<=30](quantile(1): x)", 1, 18, "expected a share, found 1", "above 0, below 1"),
        ("quantile[<=30](95, max: x)", 1, 16, "expected a share, found 95", "such as 0.95"),
        ("S[<=30](max: x)", 1, 9, "`max` has no value in the steady state", "S[<=600](avg"),
        ("E[<=30](max: x > 1)", 1, 14, "is a condition where", "a signal"),
        ("simulate [<=30] x", 1, 17, "expected `{`", "list what to record"),
        ("Pr[<=30](<> x > 1) Pr", 1, 20, "expected the end", "one query"),
        ("Pr[<=30](<> größe > 1)", 1, 15, "`ö` is not part", "Pr[<=30]"),
        ("Pr[<=30](<> x @ 1)", 1, 15, "`@` is not part", "Pr[<=30]"),
        ("Pr[<=1e999](<> x > 1)", 1, 6, "too large", "1.8e308"),
    ] {
        let error = parse(text).expect_err(text);
        let shown = error.to_string();
        assert_eq!((error.line, error.column), (line, column), "{shown}");
        assert!(error.what.contains(what), "{shown}");
        assert!(error.mend.contains(mend), "{shown}");
    }
}

#[test]
fn an_unknown_signal_is_met_with_the_nearest_one() {
    let names = ["itae", "queue.length", "flow[0].cwnd", "flow[1].cwnd"];
    for (text, column, guess) in [
        ("Pr[<=30](<> quue.length > 1)", 13, Some("queue.length")),
        ("Pr[<=30](<> 1 < flow[7].cwnd)", 17, Some("flow[0].cwnd")),
        ("Pr[<=30](<> ITAE > 1)", 13, Some("itae")),
        ("Pr[<=30](<> voltage > 1)", 13, None),
    ] {
        let query = parse(text).expect("well formed");
        let error = query.bind(text, &names).expect_err("no such signal");
        assert_eq!((error.line, error.column), (1, column), "{error}");
        let expect = guess.map_or("the signals are itae".to_owned(), |name| {
            format!("did you mean `{name}`? the signals are itae, queue.length")
        });
        assert!(error.mend.starts_with(&expect), "{error}");
    }
    let text = "Pr[#<=10](<> itae > 1)";
    let error = parse(text).and_then(|query| query.bind(text, &names)).expect_err("steps");
    assert_eq!(error.column, 4);
    assert_eq!(
        error.to_string(),
        "query:1:4: `#` counts the transitions of an automaton, which a run of packets does not have\n  \
         Pr[#<=10](<> itae > 1)\n     ^\n  \
         bound the time, such as [<=30], or a signal, such as [queue.arrivals<=1000]"
    );
}

#[test]
fn a_bound_query_says_what_it_needs() {
    let names = ["itae", "queue.length", "flow[0].cwnd"];
    let bind = |text: &str| parse(text).and_then(|query| query.bind(text, &names)).expect("bound");
    let query = bind("Pr[<=30](queue.length < 9 U itae > 1) >= Pr[<=40](<> itae > 1)");
    assert_eq!((query.signals(), query.duration_s()), (&[0, 1][..], Some(40.0)));
    assert_eq!(bind("E[queue.length<=30; 5](max: itae)").duration_s(), None);
    assert_eq!(query.text(), "Pr[<=30](queue.length < 9 U itae > 1) >= Pr[<=40](<> itae > 1)");
}

#[test]
fn size_and_nesting_are_limited() {
    let nested = format!("Pr[<=1](<> {}x > 1{})", "(".repeat(9000), ")".repeat(100));
    assert!(parse(&nested).expect_err("deep").what.contains("inside each other"));
    let signs = format!("Pr[<=1](<> {}x > 1)", "-".repeat(9000));
    assert!(parse(&signs).expect_err("deep").what.contains("inside each other"));
    let long = format!("Pr[<=1](<> x{} > 1)", "+x".repeat(3000));
    assert!(parse(&long).expect_err("long").what.contains("operators"));
    let right = format!("Pr[<=1](<> x>1 {})", "imply x>1 ".repeat(900));
    assert!(parse(&right).expect_err("deep").what.contains("inside each other"));
    assert!(parse(&" ".repeat(20_000)).expect_err("long").what.contains("bytes"));
}

fn signal() -> impl Strategy<Value = SignalName> {
    let names = ["x", "itae", "queue.length", "flow[2].cwnd", "a.b[0]", "max", "E", "_s1"];
    prop::sample::select(names.to_vec())
        .prop_map(|name| SignalName { name: name.to_owned(), span: Span::default() })
}

fn quantity() -> impl Strategy<Value = f64> {
    prop_oneof![
        (0_u32..1000).prop_map(f64::from),
        0.0..1e3,
        (0_u64..0x7FF0_0000_0000_0000).prop_map(f64::from_bits)
    ]
}

fn number() -> impl Strategy<Value = Expression> {
    let leaf =
        prop_oneof![quantity().prop_map(Expression::Number), signal().prop_map(Expression::Signal)];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let operators =
            [Binary::Add, Binary::Subtract, Binary::Multiply, Binary::Divide, Binary::Remainder];
        prop_oneof![
            inner.clone().prop_map(|x| Expression::Unary(Unary::Minus, Box::new(x))),
            (prop::sample::select(operators.to_vec()), inner.clone(), inner.clone())
                .prop_map(|(op, x, y)| Expression::Binary(op, Box::new(x), Box::new(y))),
            inner.clone().prop_map(|x| Expression::Call(Function::Abs, vec![x])),
            prop::collection::vec(inner, 1..4).prop_map(|xs| Expression::Call(Function::Min, xs)),
        ]
    })
}

fn condition() -> impl Strategy<Value = Expression> {
    let relations = [
        Binary::Less,
        Binary::LessEqual,
        Binary::Greater,
        Binary::GreaterEqual,
        Binary::Equal,
        Binary::NotEqual,
    ];
    let leaf = prop_oneof![
        any::<bool>().prop_map(Expression::Truth),
        (prop::sample::select(relations.to_vec()), number(), number())
            .prop_map(|(op, x, y)| Expression::Binary(op, Box::new(x), Box::new(y)))
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        let operators = [Binary::And, Binary::Or, Binary::Imply, Binary::Equal, Binary::NotEqual];
        prop_oneof![
            inner.clone().prop_map(|p| Expression::Unary(Unary::Not, Box::new(p))),
            (prop::sample::select(operators.to_vec()), inner.clone(), inner)
                .prop_map(|(op, p, q)| Expression::Binary(op, Box::new(p), Box::new(q))),
        ]
    })
}

fn window() -> impl Strategy<Value = Window> {
    let limit = prop_oneof![
        quantity().prop_map(Limit::Time),
        (1_u64..1_000_000).prop_map(Limit::Steps),
        (signal(), quantity()).prop_map(|(signal, value)| Limit::Signal(signal, value)),
    ];
    (limit, prop::option::of(1_u64..1_000_000)).prop_map(|(limit, runs)| Window { limit, runs })
}

fn within() -> impl Strategy<Value = Option<Within>> {
    prop::option::of((quantity(), quantity()))
        .prop_map(|ends| ends.map(|(a, b)| Within { from: a.min(b), to: a.max(b) }))
}

fn level() -> impl Strategy<Value = f64> {
    0.001..0.999
}

fn bound() -> impl Strategy<Value = Bound> {
    (any::<bool>(), 0.0..=1.0).prop_map(|(at_least, threshold)| Bound { at_least, threshold })
}

fn share() -> impl Strategy<Value = Value> {
    (within(), prop::option::of(signal()), condition()).prop_map(|(within, per, expression)| {
        Value { reduction: Reduction::Share, within, per, expression }
    })
}

fn value() -> impl Strategy<Value = Value> {
    let extremes = [Reduction::Max, Reduction::Min, Reduction::Last].to_vec();
    let extreme = (prop::sample::select(extremes), within(), number()).prop_map(
        |(reduction, within, expression)| Value { reduction, within, per: None, expression },
    );
    let weighted = prop_oneof![
        Just(Reduction::Average),
        Just(Reduction::Sum),
        level().prop_map(Reduction::Quantile)
    ];
    let weighted = (weighted, within(), prop::option::of(signal()), number()).prop_map(
        |(reduction, within, per, expression)| Value { reduction, within, per, expression },
    );
    prop_oneof![extreme, share(), weighted]
}

fn measure() -> impl Strategy<Value = Measure> {
    let path =
        (0..3, condition(), within(), condition()).prop_map(|(kind, p, within, q)| match kind {
            0 => Path::Eventually(within, p),
            1 => Path::Always(within, p),
            _ => Path::Until(p, within, q),
        });
    (window(), path).prop_map(|(window, path)| Measure { window, path })
}

fn query() -> impl Strategy<Value = Query> {
    let filter = prop::option::of(
        (prop::option::of(1_u64..1000), condition())
            .prop_map(|(runs, condition)| Filter { runs, condition }),
    );
    prop_oneof![
        measure().prop_map(Query::Probability),
        (measure(), bound()).prop_map(|(measure, bound)| Query::Hypothesis { measure, bound }),
        (measure(), measure()).prop_map(|(left, right)| Query::Comparison { left, right }),
        (window(), value()).prop_map(|(window, value)| Query::Expectation {
            window,
            value,
            bound: None
        }),
        (window(), share(), bound()).prop_map(|(window, value, bound)| Query::Expectation {
            window,
            value,
            bound: Some(bound)
        }),
        (window(), level(), value()).prop_map(|(window, p, value)| Query::Quantile {
            window,
            p,
            value
        }),
        (window(), share()).prop_map(|(window, value)| Query::SteadyState { window, value }),
        (window(), prop::collection::vec(number(), 1..4), filter)
            .prop_map(|(window, values, filter)| Query::Simulation { window, values, filter }),
    ]
}

/// Words that make texts which are nearly queries.
const WORDS: &str = "\
    Pr S quantile per share avg last E simulate [ ] <= 30 ms ( ) <> [] x itae > 8727 U imply and \
    || ! - + * % max : ; , { } # . flow[2].cwnd == = 1e308 // é \n";

/// The text of a query after the runs, each a list of (seconds since the last value, the value of every
/// signal), where it gave an interval that is none.
fn bad_interval(query: &Query, runs: &[Vec<(f64, f64)>]) -> Option<String> {
    let text = query.to_string();
    let names = ["x", "itae", "queue.length", "flow[2].cwnd", "a.b[0]", "max", "E", "_s1"];
    let bound = query.bind(&text, &names).ok()?;
    let mut procedure = Procedure::new(&bound, &Settings::default()).ok()?;
    for (number, run) in (0..).zip(runs) {
        let mut monitor = bound.monitor(number);
        let mut time = 0.0;
        for (step, value) in run {
            time += step;
            monitor.observe(time, &[*value; 8]);
        }
        procedure.push(monitor.finish(time + 1.0));
        let interval = procedure.report().interval;
        if !interval.is_none_or(|found| found.low <= found.high) {
            return Some(format!("{text} after {} runs: {interval:?}", number + 1));
        }
    }
    None
}

#[test]
fn values_beyond_what_a_double_holds_give_no_interval() {
    // As the property below found it: a steady state per an event whose counts are infinite.
    let query = parse("S[<=3](share per x: !!(0 < -6.8e-321))").expect("a query");
    let run = vec![
        (0.513_077_829_313_144, 1.047_651_303_397_386_2e170),
        (0.549_723_608_291_400_5, 7.6e-309),
        (1.480_185_943_254_311_4, f64::INFINITY),
        (1.207, 9.6e-48),
        (1.811, f64::NAN),
    ];
    assert_eq!(bad_interval(&query, &[run]), None);
}

proptest! {
    #[test]
    fn a_printed_query_is_parsed_to_the_same_query(query in query()) {
        let text = query.to_string();
        let parsed = parse(&text);
        prop_assert_eq!(parsed.map_err(|error| error.to_string()), Ok(query));
    }

    #[test]
    fn no_query_panics_on_any_run(query in query(), runs in prop::collection::vec(
        prop::collection::vec((0.0..2.0_f64, prop::num::f64::ANY), 0..6), 1..5))
    {
        prop_assert_eq!(bad_interval(&query, &runs), None);
    }

    #[test]
    fn no_text_panics(text in ".{0,200}") {
        if let Err(error) = parse(&text) {
            prop_assert!(error.line >= 1 && error.column >= 1 && !error.to_string().is_empty());
        }
    }

    #[test]
    fn no_sequence_of_words_panics(words in prop::collection::vec(prop::sample::select(WORDS.split(' ').collect::<Vec<_>>()), 0..60)) {
        for text in [words.concat(), words.join(" ")] {
            match parse(&text) {
                Err(error) => prop_assert!(!error.to_string().is_empty()),
                Ok(query) => {
                    let _ = query.bind(&text, &["x", "itae"]);
                }
            }
        }
    }
}
