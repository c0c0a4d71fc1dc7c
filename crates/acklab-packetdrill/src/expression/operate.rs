//! What signs and functions do with values.

use super::datum::{Datum, Fault};

pub(super) fn truth(holds: bool) -> Datum {
    Datum::Int(i128::from(holds))
}

#[expect(clippy::float_cmp, reason = "Python compares exactly")]
pub(super) fn compare(left: &Datum, sign: &str, right: &Datum) -> Result<bool, Fault> {
    if let (Datum::List(items), "in" | "not in") = (right, sign) {
        let found = items.iter().any(|item| compare(left, "==", item).unwrap_or(false));
        return Ok(found == (sign == "in"));
    }
    if let (Datum::Int(a), Datum::Int(b)) = (left, right) {
        return Ok(match sign {
            "<" => a < b,
            ">" => a > b,
            "<=" => a <= b,
            ">=" => a >= b,
            "==" => a == b,
            _ => a != b,
        });
    }
    let mixed =
        matches!((left, right), (Datum::Int(_) | Datum::Float(_), Datum::Int(_) | Datum::Float(_)));
    if !mixed {
        return match sign {
            "==" => Ok(left == right),
            "!=" => Ok(left != right),
            _ => Err(Fault::Unsupported(format!("{left} {sign} {right}"))),
        };
    }
    let (a, b) = (left.number()?, right.number()?);
    Ok(match sign {
        "<" => a < b,
        ">" => a > b,
        "<=" => a <= b,
        ">=" => a >= b,
        "==" => a == b,
        _ => a != b,
    })
}

pub(super) fn operate(left: &Datum, sign: &str, right: &Datum) -> Result<Datum, Fault> {
    let unsupported = || Fault::Unsupported(format!("{left} {sign} {right}"));
    if let (Datum::Text(format), "%") = (left, sign) {
        return Ok(Datum::Text(render(format, right)));
    }
    if let (Datum::Text(a), "+", Datum::Text(b)) = (left, sign, right) {
        return Ok(Datum::Text(format!("{a}{b}")));
    }
    if let (Datum::Int(a), Datum::Int(b)) = (left, right) {
        let (a, b) = (*a, *b);
        let small = u32::try_from(b).ok();
        let whole = match sign {
            "+" => a.checked_add(b),
            "-" => a.checked_sub(b),
            "*" => a.checked_mul(b),
            "//" => floored(a, b).map(|(quotient, _)| quotient),
            "%" => floored(a, b).map(|(_, rest)| rest),
            "&" => Some(a & b),
            "|" => Some(a | b),
            "^" => Some(a ^ b),
            "<<" => small.and_then(|b| a.checked_shl(b)),
            ">>" => small.and_then(|b| a.checked_shr(b)),
            "**" => small.and_then(|b| a.checked_pow(b)),
            "/" if b != 0 => return Ok(Datum::Float(a as f64 / b as f64)),
            _ => None,
        };
        return whole.map(Datum::Int).ok_or_else(unsupported);
    }
    let (a, b) = (left.number()?, right.number()?);
    match sign {
        "+" => Ok(Datum::Float(a + b)),
        "-" => Ok(Datum::Float(a - b)),
        "*" => Ok(Datum::Float(a * b)),
        "/" if b != 0.0 => Ok(Datum::Float(a / b)),
        "//" if b != 0.0 => Ok(Datum::Float((a / b).floor())),
        _ => Err(unsupported()),
    }
}

/// The quotient, rounded down, and a rest with the sign of `b`.
fn floored(a: i128, b: i128) -> Option<(i128, i128)> {
    let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
    let down = rest != 0 && (rest < 0) != (b < 0);
    Some(if down { (quotient - 1, rest + b) } else { (quotient, rest) })
}

/// A format with its arguments, for messages.
fn render(format: &str, args: &Datum) -> String {
    let list = match args {
        Datum::List(list) => list.clone(),
        one => vec![one.clone()],
    };
    let mut args = list.into_iter();
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.find(|c| c.is_ascii_alphabetic() || *c == '%') {
            Some('%') => out.push('%'),
            Some(_) => out.push_str(&args.next().map(|a| a.to_string()).unwrap_or_default()),
            None => {}
        }
    }
    out
}

/// Longer ranges no assertion needs.
const LONGEST: usize = 10_000;

/// `range(end)`, `range(begin, end)`, `range(begin, end, step)`.
fn range(args: &[Datum]) -> Option<Datum> {
    let (begin, end, step) = match args {
        [Datum::Int(end)] => (0, *end, 1),
        [Datum::Int(begin), Datum::Int(end)] => (*begin, *end, 1),
        [Datum::Int(begin), Datum::Int(end), Datum::Int(step)] if *step > 0 => {
            (*begin, *end, *step)
        }
        _ => return None,
    };
    let step = usize::try_from(step).ok()?;
    let all: Vec<Datum> = (begin..end).step_by(step).take(LONGEST + 1).map(Datum::Int).collect();
    (all.len() <= LONGEST).then_some(Datum::List(all))
}

pub(super) fn apply(name: &str, args: &[Datum]) -> Result<Datum, Fault> {
    let unsupported = || Fault::Unsupported(format!("the function {name}"));
    let extreme = |sign: &str| {
        let items = match args {
            [Datum::List(items)] => items.as_slice(),
            items => items,
        };
        let mut best = items.first().ok_or_else(unsupported)?;
        for item in &items[1..] {
            if compare(item, sign, best)? {
                best = item;
            }
        }
        Ok(best.clone())
    };
    match (name, args) {
        ("min", _) => extreme("<"),
        ("max", _) => extreme(">"),
        ("abs", [Datum::Int(n)]) => Ok(Datum::Int(n.abs())),
        ("abs", [Datum::Float(x)]) => Ok(Datum::Float(x.abs())),
        ("int" | "long", [value]) => Ok(Datum::Int(value.number()? as i128)),
        ("round", [value]) => Ok(Datum::Int(value.number()?.round_ties_even() as i128)),
        ("float", [value]) => Ok(Datum::Float(value.number()?)),
        ("len", [Datum::List(list)]) => Ok(Datum::Int(list.len() as i128)),
        ("len", [Datum::Text(text)]) => Ok(Datum::Int(text.chars().count() as i128)),
        ("bool", [value]) => Ok(truth(value.is_true())),
        ("list" | "tuple", [list @ Datum::List(_)]) => Ok(list.clone()),
        ("all", [Datum::List(list)]) => Ok(truth(list.iter().all(Datum::is_true))),
        ("any", [Datum::List(list)]) => Ok(truth(list.iter().any(Datum::is_true))),
        ("sum", [Datum::List(list)]) => {
            list.iter().try_fold(Datum::Int(0), |sum, item| operate(&sum, "+", item))
        }
        ("pow", [base, exponent]) => operate(base, "**", exponent),
        ("divmod", [a, b]) => Ok(Datum::List(vec![operate(a, "//", b)?, operate(a, "%", b)?])),
        ("range", _) => range(args).ok_or_else(unsupported),
        ("ceil", [value]) => Ok(Datum::Int(value.number()?.ceil() as i128)),
        ("floor", [value]) => Ok(Datum::Int(value.number()?.floor() as i128)),
        ("sqrt", [value]) => Ok(Datum::Float(value.number()?.sqrt())),
        ("str", [value]) => Ok(Datum::Text(value.to_string())),
        _ => Err(unsupported()),
    }
}
