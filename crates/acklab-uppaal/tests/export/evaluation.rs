//! Carries out what [`crate::syntax`] reads. An evaluation that UPPAAL would call invalid panics: a
//! value outside its type's range, an index outside an array, a double where an integer must be.

use acklab_core::math;
use acklab_core::rng::Rng;

use crate::syntax::{Base, Callee, Expr, Function, Place, Statement, Step, Type, Unit};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Int(i64),
    Double(f64),
    /// An array or a record.
    Many(Vec<Value>),
}

impl Value {
    pub(crate) fn int(&self) -> i64 {
        match self {
            Self::Int(value) => *value,
            other => panic!("{other:?} is no integer"),
        }
    }

    pub(crate) fn real(&self) -> f64 {
        match self {
            Self::Int(value) => *value as f64,
            Self::Double(value) => *value,
            Self::Many(_) => panic!("not a number"),
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.int() != 0
    }
}

/// The value that a variable of this type has before anything is assigned.
pub(crate) fn initial(kind: &Type) -> Value {
    match kind {
        Type::Int { low, high } => Value::Int(0.clamp(*low, *high)),
        Type::Double | Type::Clock => Value::Double(0.0),
        Type::Array(inner, size) => Value::Many(vec![initial(inner); *size]),
        Type::Record(fields) => Value::Many(fields.iter().map(|(_, kind)| initial(kind)).collect()),
        Type::Void | Type::Channel => Value::Int(0),
    }
}

/// `value` as one of type `kind`.
fn coerced(kind: &Type, value: Value) -> Value {
    match (kind, value) {
        (Type::Int { low, high }, Value::Int(value)) => {
            assert!((*low..=*high).contains(&value), "{value} is outside [{low}, {high}]");
            Value::Int(value)
        }
        (Type::Int { .. }, value) => panic!("an integer cannot be {value:?}; fint() is missing"),
        (Type::Double | Type::Clock, value) => Value::Double(value.real()),
        (_, value) => value,
    }
}

/// What an evaluation sees.
pub(crate) struct Memory<'a> {
    pub(crate) global: &'a Unit,
    pub(crate) template: &'a Unit,
    pub(crate) globals: &'a mut Vec<Value>,
    pub(crate) members: &'a mut Vec<Value>,
    pub(crate) rng: &'a mut Rng,
}

impl Memory<'_> {
    /// The value of an expression outside any function.
    pub(crate) fn value(&mut self, expression: &Expr) -> Value {
        self.eval(&mut vec![], expression)
    }

    /// Calls a function of the template, or of the global declarations, by its name.
    pub(crate) fn call(&mut self, name: &str) -> Value {
        let (template, global) = (self.template, self.global);
        let named =
            |unit: &'_ Unit| unit.functions.iter().position(|function| function.name == name);
        let function = match (named(template), named(global)) {
            (Some(at), _) => &template.functions[at],
            (None, Some(at)) => &global.functions[at],
            _ => panic!("no function {name}"),
        };
        self.run(function, vec![])
    }

    fn run(&mut self, function: &Function, mut locals: Vec<Value>) -> Value {
        for (kind, value) in function.parameters.iter().zip(&mut locals) {
            *value = coerced(kind, value.clone());
        }
        assert_eq!(function.parameters.len(), locals.len(), "arguments of {}", function.name);
        locals.resize(function.frame, Value::Int(0));
        let result = self.block(&mut locals, &function.body);
        match (&function.returns, result) {
            (Type::Void, None) => Value::Int(0),
            (Type::Void, Some(_)) | (_, None) => panic!("{} returns something else", function.name),
            (kind, Some(value)) => coerced(kind, value),
        }
    }

    /// The value returned, if anything was.
    fn block(&mut self, locals: &mut Vec<Value>, body: &[Statement]) -> Option<Value> {
        body.iter().find_map(|statement| self.statement(locals, statement))
    }

    fn statement(&mut self, locals: &mut Vec<Value>, statement: &Statement) -> Option<Value> {
        match statement {
            Statement::Expr(expression) => {
                self.eval(locals, expression);
                None
            }
            Statement::If(condition, then, otherwise) => {
                if self.eval(locals, condition).holds() {
                    return self.statement(locals, then);
                }
                otherwise.as_ref().and_then(|other| self.statement(locals, other))
            }
            Statement::While(condition, body) => {
                for _ in 0..100_000 {
                    if !self.eval(locals, condition).holds() {
                        return None;
                    }
                    if let Some(value) = self.statement(locals, body) {
                        return Some(value);
                    }
                }
                panic!("a loop does not end");
            }
            Statement::Return(value) => {
                Some(value.as_ref().map_or(Value::Int(0), |value| self.eval(locals, value)))
            }
            Statement::Block(body) => self.block(locals, body),
            Statement::Local(slot, kind, value) => {
                let value = value.as_ref().map(|value| self.eval(locals, value));
                locals[*slot] = value.map_or_else(|| initial(kind), |value| coerced(kind, value));
                None
            }
        }
    }

    fn eval(&mut self, locals: &mut Vec<Value>, expression: &Expr) -> Value {
        match expression {
            Expr::Int(value) => Value::Int(*value),
            Expr::Double(value) => Value::Double(*value),
            Expr::Read(place) => self.slot(locals, place).clone(),
            Expr::Assign(place, value) => {
                let value = coerced(&place.kind, self.eval(locals, value));
                self.slot(locals, place).clone_from(&value);
                value
            }
            Expr::Add(place, by) => {
                let before = self.slot(locals, place).clone();
                let after = coerced(&place.kind, Value::Int(before.int() + by));
                *self.slot(locals, place) = after;
                before
            }
            Expr::Call(callee, arguments) => {
                let arguments = arguments.iter().map(|a| self.eval(locals, a)).collect();
                let function = match callee {
                    Callee::Global(at) => &self.global.functions[*at],
                    Callee::Member(at) => &self.template.functions[*at],
                };
                self.run(function, arguments)
            }
            Expr::Builtin(name, arguments) => {
                let arguments: Vec<f64> =
                    arguments.iter().map(|a| self.eval(locals, a).real()).collect();
                self.builtin(name, &arguments)
            }
            Expr::Unary(operator, inner) => match (operator.as_str(), self.eval(locals, inner)) {
                ("-", Value::Int(value)) => Value::Int(-value),
                ("-", value) => Value::Double(-value.real()),
                (_, value) => Value::Int(i64::from(!value.holds())),
            },
            Expr::Binary(operator, left, right) => {
                let left = self.eval(locals, left);
                match operator.as_str() {
                    "&&" if !left.holds() => Value::Int(0),
                    "||" if left.holds() => Value::Int(1),
                    "&&" | "||" => Value::Int(i64::from(self.eval(locals, right).holds())),
                    operator => {
                        let right = self.eval(locals, right);
                        binary(operator, &left, &right)
                    }
                }
            }
        }
    }

    fn builtin(&mut self, name: &str, arguments: &[f64]) -> Value {
        Value::Double(match (name, arguments) {
            ("fint", [value]) => return Value::Int(*value as i64),
            ("fabs", [value]) => value.abs(),
            ("fmax", [a, b]) => a.max(*b),
            ("fmin", [a, b]) => a.min(*b),
            ("pow", [a, b]) => math::pow(*a, *b),
            ("sqrt", [value]) => value.sqrt(),
            ("random", [bound]) => self.rng.uniform() * bound,
            _ => panic!("{name} does not take {} arguments", arguments.len()),
        })
    }

    fn slot<'b>(&'b mut self, locals: &'b mut Vec<Value>, place: &Place) -> &'b mut Value {
        let mut path = vec![];
        for step in &place.steps {
            path.push(match step {
                Step::Field(at) => *at,
                Step::Index(expression) => {
                    let index = self.eval(locals, expression).int();
                    usize::try_from(index).unwrap_or_else(|_| panic!("index {index}"))
                }
            });
        }
        let mut value = match place.base {
            Base::Global(at) => &mut self.globals[at],
            Base::Member(at) => &mut self.members[at],
            Base::Local(at) => &mut locals[at],
        };
        for at in path {
            let Value::Many(parts) = value else { panic!("no parts in {place:?}") };
            let size = parts.len();
            value = parts.get_mut(at).unwrap_or_else(|| panic!("index {at} of {size}"));
        }
        value
    }
}

fn binary(operator: &str, left: &Value, right: &Value) -> Value {
    if let (Value::Int(a), Value::Int(b)) = (left, right) {
        let truth = |holds: bool| i64::from(holds);
        let result = match operator {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "/" => a.checked_div(*b).expect("division by zero"),
            "%" => a.checked_rem(*b).expect("division by zero"),
            "<?" => *a.min(b),
            ">?" => *a.max(b),
            "<" => truth(a < b),
            "<=" => truth(a <= b),
            ">" => truth(a > b),
            ">=" => truth(a >= b),
            "==" => truth(a == b),
            _ => truth(a != b),
        };
        assert!(i32::try_from(result).is_ok(), "{a} {operator} {b} is beyond 32 bits");
        return Value::Int(result);
    }
    let (a, b) = (left.real(), right.real());
    #[expect(clippy::float_cmp, reason = "what the language's operator does")]
    let truth = match operator {
        "+" => return Value::Double(a + b),
        "-" => return Value::Double(a - b),
        "*" => return Value::Double(a * b),
        "/" => return Value::Double(a / b),
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        ">=" => a >= b,
        "==" => a == b,
        "!=" => a != b,
        other => panic!("{other} is for integers"),
    };
    Value::Int(i64::from(truth))
}
