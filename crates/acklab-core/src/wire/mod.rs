//! Wire formats: parsed values (`Repr`) and, at the edges only, their bytes.

pub mod tcp;
