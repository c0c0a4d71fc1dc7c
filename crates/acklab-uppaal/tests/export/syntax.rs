//! The part of UPPAAL's language that the export writes: types, declarations, functions, expressions.
//!
//! Written from the public language reference; stricter where that helps: only what the export uses is
//! known, names are resolved while reading, constants are folded, a local declaration stands at the
//! head of its block, and integers have the range of their type (a plain `int` ends at 32767).

use std::collections::BTreeMap;
use std::rc::Rc;

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Void,
    Int { low: i64, high: i64 },
    Double,
    Clock,
    Channel,
    Array(Box<Type>, usize),
    Record(Rc<Vec<(String, Type)>>),
}

pub(crate) const BOOL: Type = Type::Int { low: 0, high: 1 };
const PLAIN_INT: Type = Type::Int { low: -32768, high: 32767 };

/// Where a variable lives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Base {
    Global(usize),
    Member(usize),
    Local(usize),
}

/// A variable, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) base: Base,
    pub(crate) steps: Vec<Step>,
    pub(crate) kind: Type,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Index(Expr),
    Field(usize),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Int(i64),
    Double(f64),
    Read(Place),
    Assign(Place, Box<Expr>),
    /// `++` and `--` behind a place.
    Add(Place, i64),
    Call(Callee, Vec<Expr>),
    Builtin(String, Vec<Expr>),
    Unary(String, Box<Expr>),
    Binary(String, Box<Expr>, Box<Expr>),
}

/// A function of the global declarations or of the template.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Callee {
    Global(usize),
    Member(usize),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    Expr(Expr),
    If(Expr, Box<Statement>, Option<Box<Statement>>),
    While(Expr, Box<Statement>),
    Return(Option<Expr>),
    Block(Vec<Statement>),
    Local(usize, Type, Option<Expr>),
}

/// A function. Its parameters are its first locals.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) returns: Type,
    pub(crate) parameters: Vec<Type>,
    pub(crate) frame: usize,
    pub(crate) body: Vec<Statement>,
}

/// A variable with its initial value.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) initial: Option<Expr>,
}

/// What a list of declarations declares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    pub(crate) variables: Vec<Variable>,
    pub(crate) functions: Vec<Function>,
    types: BTreeMap<String, Type>,
    constants: BTreeMap<String, Expr>,
}

/// Reads declarations and expressions.
pub(crate) struct Reader<'a> {
    tokens: Vec<String>,
    at: usize,
    outer: Option<&'a Unit>,
    pub(crate) unit: Unit,
    locals: Vec<(String, Type)>,
    frame: usize,
}

const BUILTINS: &[&str] = &["fint", "fabs", "fmax", "fmin", "pow", "sqrt", "random"];

/// Words that may not be names, in declarations or in queries (among the language's).
const KEYWORDS: &str = "\
    const select guard sync assign probability process state branchpoint init trans urgent \
    commit broadcast system true false and or xor not imply for while do if else default return \
    typedef struct import meta progress gantt assert IO forall exists sum deadlock priority bool \
    int double string chan clock void scalar control simulation under strategy simulate sat inf \
    sup bounds Pmax Pr X abs fma fmod exp ln log sin cos tan ceil floor round trunc hybrid \
    dynamic spawn exit numOf foreach query location A E U R W switch case break continue";

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &str, outer: Option<&'a Unit>) -> Self {
        let (tokens, unit) = (tokens(text), Unit::default());
        Self { tokens, at: 0, outer, unit, locals: vec![], frame: 0 }
    }

    /// Reads all declarations.
    pub(crate) fn declarations(mut self) -> Unit {
        while self.at < self.tokens.len() {
            self.declaration();
        }
        self.unit
    }

    /// Reads `type name, type name`, a template's parameters, which come first in its unit.
    pub(crate) fn template_parameters(&mut self, text: &str) {
        let rest = std::mem::replace(&mut self.tokens, tokens(text));
        while self.at < self.tokens.len() {
            assert!(self.take("const"), "parameters are constants: {text}");
            let kind = self.kind();
            let name = self.name();
            self.unit.variables.push(Variable { name, kind, initial: None });
            assert!(self.take(",") || self.at == self.tokens.len(), "{text}");
        }
        (self.tokens, self.at) = (rest, 0);
    }

    /// Reads one expression in the scope of `unit`, to the end of the text.
    pub(crate) fn expression_in(text: &str, outer: Option<&'a Unit>, unit: &Unit) -> Expr {
        let mut reader = Self { unit: unit.clone(), ..Self::new(text, outer) };
        let expression = reader.expression();
        assert_eq!(reader.at, reader.tokens.len(), "{text}: something follows the expression");
        expression
    }

    /// Reads `expression, expression, …` in the scope of `unit`.
    pub(crate) fn list_in(text: &str, outer: Option<&'a Unit>, unit: &Unit) -> Vec<Expr> {
        let mut reader = Self { unit: unit.clone(), ..Self::new(text, outer) };
        let mut list = vec![];
        while reader.at < reader.tokens.len() {
            list.push(reader.expression());
            assert!(reader.take(",") || reader.at == reader.tokens.len(), "{text}");
        }
        list
    }

    fn peek(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", String::as_str)
    }

    fn take(&mut self, token: &str) -> bool {
        let is = self.peek(0) == token;
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, token: &str) {
        let before = self.tokens[self.at.saturating_sub(8)..self.at].join(" ");
        assert!(self.take(token), "{token:?} expected after {before:?}, found {:?}", self.peek(0));
    }

    fn name(&mut self) -> String {
        let name = self.peek(0).to_owned();
        let first = name.chars().next().unwrap_or(' ');
        assert!(first.is_ascii_alphabetic() || first == '_', "{name:?} is no name");
        let mut reserved = KEYWORDS.split(' ').chain(BUILTINS.iter().copied());
        assert!(reserved.all(|word| word != name), "{name:?} is a word of the language");
        self.at += 1;
        name
    }

    fn declaration(&mut self) {
        if self.take("typedef") {
            let kind = self.kind();
            let name = self.name();
            self.unit.types.insert(name, kind);
            return self.expect(";");
        }
        let constant = self.take("const");
        let broadcast = self.take("broadcast");
        let kind = self.kind();
        assert_eq!(broadcast, kind == Type::Channel, "UPPAAL SMC wants broadcast channels");
        if self.peek(1) == "(" {
            return self.function(kind);
        }
        loop {
            let name = self.name();
            let known = self.unit.variables.iter().any(|variable| variable.name == name);
            assert!(!known && !self.unit.constants.contains_key(&name), "{name} is declared twice");
            let kind = self.dimensions(kind.clone());
            let initial = self.take("=").then(|| self.expression());
            if constant {
                let value = initial.unwrap_or_else(|| panic!("constant {name} has no value"));
                let value = fold(&value).unwrap_or_else(|| panic!("{name} is not constant"));
                let value = match (kind, value) {
                    (Type::Double, Expr::Int(whole)) => Expr::Double(whole as f64),
                    (Type::Double, value @ Expr::Double(_))
                    | (Type::Int { .. }, value @ Expr::Int(_)) => value,
                    (kind, value) => panic!("{name}: {kind:?} cannot be {value:?}"),
                };
                self.unit.constants.insert(name, value);
            } else {
                self.unit.variables.push(Variable { name, kind, initial });
            }
            if !self.take(",") {
                break;
            }
        }
        self.expect(";");
    }

    fn kind(&mut self) -> Type {
        if self.take("struct") {
            self.expect("{");
            let mut fields = vec![];
            while !self.take("}") {
                let kind = self.kind();
                fields.push((self.name(), kind));
                self.expect(";");
            }
            return Type::Record(Rc::new(fields));
        }
        let word = self.peek(0).to_owned();
        self.at += 1;
        match word.as_str() {
            "void" => Type::Void,
            "bool" => BOOL,
            "double" => Type::Double,
            "clock" => Type::Clock,
            "chan" => Type::Channel,
            "int" if self.take("[") => {
                let low = self.constant();
                self.expect(",");
                let high = self.constant();
                self.expect("]");
                assert!(low <= high && low >= -(1 << 31) && high < 1 << 31, "int[{low}, {high}]");
                Type::Int { low, high }
            }
            "int" => PLAIN_INT,
            name => self.type_named(name).unwrap_or_else(|| panic!("no type {name:?}")),
        }
    }

    fn type_named(&self, name: &str) -> Option<Type> {
        let outer = || self.outer.and_then(|unit| unit.types.get(name));
        self.unit.types.get(name).or_else(outer).cloned()
    }

    fn dimensions(&mut self, kind: Type) -> Type {
        if !self.take("[") {
            return kind;
        }
        let size = self.constant();
        self.expect("]");
        let inner = self.dimensions(kind);
        Type::Array(Box::new(inner), usize::try_from(size).expect("an array has a size"))
    }

    fn constant(&mut self) -> i64 {
        let expression = self.expression();
        match fold(&expression) {
            Some(Expr::Int(value)) => value,
            other => panic!("not a constant integer: {other:?}"),
        }
    }

    fn function(&mut self, returns: Type) {
        let name = self.name();
        let known = self.unit.functions.iter().any(|function| function.name == name);
        assert!(!known, "function {name} is declared twice");
        self.expect("(");
        let mut parameters = vec![];
        while !self.take(")") {
            let kind = self.kind();
            self.locals.push((self.tokens[self.at].clone(), kind.clone()));
            let _ = self.name();
            parameters.push(kind);
            assert!(self.take(",") || self.peek(0) == ")", "parameters of {name}");
        }
        self.frame = self.locals.len();
        let body = self.block();
        let frame = self.frame;
        self.locals.clear();
        self.unit.functions.push(Function { name, returns, parameters, frame, body });
    }

    /// `{ declarations statements }`: in this order.
    fn block(&mut self) -> Vec<Statement> {
        self.expect("{");
        let outside = self.locals.len();
        let mut body = vec![];
        while self.starts_a_declaration() {
            let kind = self.kind();
            let name = self.name();
            let kind = self.dimensions(kind);
            let initial = self.take("=").then(|| self.expression());
            self.expect(";");
            body.push(Statement::Local(self.locals.len(), kind.clone(), initial));
            self.locals.push((name, kind));
            self.frame = self.frame.max(self.locals.len());
        }
        while !self.take("}") {
            body.push(self.statement());
        }
        self.locals.truncate(outside);
        body
    }

    fn starts_a_declaration(&self) -> bool {
        let word = self.peek(0);
        ["int", "bool", "double"].contains(&word) || self.type_named(word).is_some()
    }

    fn statement(&mut self) -> Statement {
        assert!(!self.starts_a_declaration(), "declarations stand at the head of a block");
        if self.peek(0) == "{" {
            return Statement::Block(self.block());
        }
        if self.take("if") {
            self.expect("(");
            let condition = self.expression();
            self.expect(")");
            let then = Box::new(self.statement());
            let otherwise = self.take("else").then(|| Box::new(self.statement()));
            return Statement::If(condition, then, otherwise);
        }
        if self.take("while") {
            self.expect("(");
            let condition = self.expression();
            self.expect(")");
            return Statement::While(condition, Box::new(self.statement()));
        }
        let statement = if self.take("return") {
            let value = (self.peek(0) != ";").then(|| self.expression());
            Statement::Return(value)
        } else {
            Statement::Expr(self.expression())
        };
        self.expect(";");
        statement
    }

    fn expression(&mut self) -> Expr {
        let left = self.binary(0);
        if !self.take("=") {
            return left;
        }
        let Expr::Read(place) = left else { panic!("only a variable can be assigned to") };
        Expr::Assign(place, Box::new(self.expression()))
    }

    fn binary(&mut self, level: usize) -> Expr {
        let Some(operators) = PRECEDENCE.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1);
        while operators.contains(&self.peek(0)) {
            let operator = self.peek(0).to_owned();
            self.at += 1;
            let right = self.binary(level + 1);
            let whole = Expr::Binary(operator, Box::new(left), Box::new(right));
            left = fold(&whole).unwrap_or(whole);
        }
        left
    }

    fn unary(&mut self) -> Expr {
        for operator in ["-", "!"] {
            if self.take(operator) {
                let whole = Expr::Unary(operator.into(), Box::new(self.unary()));
                return fold(&whole).unwrap_or(whole);
            }
        }
        self.postfix()
    }

    fn postfix(&mut self) -> Expr {
        if self.take("(") {
            let inner = self.expression();
            self.expect(")");
            return inner;
        }
        let token = self.peek(0).to_owned();
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            self.at += 1;
            return number(&token);
        }
        if token == "true" || token == "false" {
            self.at += 1;
            return Expr::Int(i64::from(token == "true"));
        }
        if BUILTINS.contains(&token.as_str()) {
            self.at += 1;
            return Expr::Builtin(token, self.arguments());
        }
        let name = self.name();
        if self.peek(0) == "(" {
            let callee = self.callee(&name);
            return Expr::Call(callee, self.arguments());
        }
        let outer = || self.outer.and_then(|unit| unit.constants.get(&name));
        if let Some(value) = self.unit.constants.get(&name).or_else(outer) {
            return value.clone();
        }
        self.place(&name)
    }

    fn arguments(&mut self) -> Vec<Expr> {
        self.expect("(");
        let mut list = vec![];
        while !self.take(")") {
            list.push(self.expression());
            assert!(self.take(",") || self.peek(0) == ")", "arguments");
        }
        list
    }

    fn callee(&self, name: &str) -> Callee {
        let find = |unit: &Unit| unit.functions.iter().position(|function| function.name == name);
        match (find(&self.unit), self.outer.and_then(find)) {
            (Some(at), _) if self.outer.is_some() => Callee::Member(at),
            (Some(at), _) | (_, Some(at)) => Callee::Global(at),
            _ => panic!("{name}() is not declared before its use"),
        }
    }

    fn place(&mut self, name: &str) -> Expr {
        let find = |unit: &Unit| {
            let at = unit.variables.iter().position(|variable| variable.name == name)?;
            Some((at, unit.variables[at].kind.clone()))
        };
        let local = self.locals.iter().rposition(|(local, _)| local == name);
        let (base, mut kind) = if let Some(at) = local {
            (Base::Local(at), self.locals[at].1.clone())
        } else if let Some((at, kind)) = find(&self.unit) {
            (if self.outer.is_some() { Base::Member(at) } else { Base::Global(at) }, kind)
        } else {
            let (at, kind) =
                self.outer.and_then(find).unwrap_or_else(|| panic!("{name:?} is not declared"));
            (Base::Global(at), kind)
        };
        let mut steps = vec![];
        loop {
            if self.take("[") {
                let Type::Array(inner, _) = kind else { panic!("{name} is no array") };
                steps.push(Step::Index(self.expression()));
                kind = *inner;
                self.expect("]");
            } else if self.take(".") {
                let Type::Record(fields) = kind else { panic!("{name} is no record") };
                let field = self.name();
                let at = fields.iter().position(|(other, _)| *other == field);
                let at = at.unwrap_or_else(|| panic!("{name} has no field {field}"));
                steps.push(Step::Field(at));
                kind = fields[at].1.clone();
            } else {
                break;
            }
        }
        let place = Place { base, steps, kind };
        for (operator, by) in [("++", 1), ("--", -1)] {
            if self.take(operator) {
                assert!(matches!(place.kind, Type::Int { .. }), "{name}{operator} is for integers");
                return Expr::Add(place, by);
            }
        }
        Expr::Read(place)
    }
}

/// From the loosest to the tightest, as the language reference has them.
const PRECEDENCE: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<?", ">?"],
    &["+", "-"],
    &["*", "/", "%"],
];

fn number(token: &str) -> Expr {
    if let Ok(whole) = token.parse::<i64>() {
        assert!(whole < 1 << 31, "{token} is beyond 32 bits");
        return Expr::Int(whole);
    }
    Expr::Double(token.parse().unwrap_or_else(|_| panic!("{token:?} is no number")))
}

/// The value of a constant expression.
pub(crate) fn fold(expression: &Expr) -> Option<Expr> {
    match expression {
        Expr::Int(_) | Expr::Double(_) => Some(expression.clone()),
        Expr::Unary(operator, inner) => match (operator.as_str(), fold(inner)?) {
            ("-", Expr::Int(value)) => Some(Expr::Int(-value)),
            ("-", Expr::Double(value)) => Some(Expr::Double(-value)),
            ("!", Expr::Int(value)) => Some(Expr::Int(i64::from(value == 0))),
            _ => None,
        },
        Expr::Binary(operator, left, right) => {
            let (Expr::Int(a), Expr::Int(b)) = (fold(left)?, fold(right)?) else { return None };
            Some(Expr::Int(match operator.as_str() {
                "+" => a + b,
                "-" => a - b,
                "*" => a * b,
                _ => return None,
            }))
        }
        _ => None,
    }
}

/// Splits a text into tokens; comments and white space are dropped.
fn tokens(text: &str) -> Vec<String> {
    const DOUBLE: &[&str] = &["++", "--", "<=", ">=", "==", "!=", "&&", "||", "<?", ">?"];
    let mut list = vec![];
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            rest = rest[end..].trim_start();
            continue;
        } else if first.is_ascii_digit() {
            number_length(rest)
        } else if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if DOUBLE.iter().any(|operator| rest.starts_with(operator)) {
            2
        } else {
            assert!("+-*/%<>=!()[]{},.;:".contains(first), "unknown symbol {first:?}");
            1
        };
        list.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    list
}

/// Digits, perhaps a point and digits, perhaps an exponent.
fn number_length(text: &str) -> usize {
    let digits = |from: usize| {
        text[from..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |end| from + end)
    };
    let mut end = digits(0);
    if text[end..].starts_with('.') && digits(end + 1) > end + 1 {
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    end
}
