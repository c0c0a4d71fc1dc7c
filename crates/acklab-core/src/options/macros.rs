//! The macros that declare words and options.

/// Declares an enum whose variants have names: names, all variants, `Display`, `FromStr`.
///
/// ```
/// use acklab_core::options::Word;
///
/// acklab_core::words! {
///     /// When the queue is looked at.
///     pub enum Look {
///         /// When a packet comes.
///         Arrival = "arrival",
///         /// When it leaves.
///         Departure = "departure",
///     }
/// }
/// assert_eq!("departure".parse(), Ok(Look::Departure));
/// assert_eq!(Look::NAMES, ["arrival", "departure"]);
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident {
            $($(#[$variant_meta:meta])* $Variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $Name {
            $($(#[$variant_meta])* $Variant,)+
        }

        impl $crate::options::Word for $Name {
            const ALL: &'static [Self] = &[$(Self::$Variant),+];
            const NAMES: &'static [&'static str] = &[$($word),+];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $word,)+
                }
            }
        }

        impl ::std::fmt::Display for $Name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad($crate::options::Word::name(*self))
            }
        }

        impl ::std::str::FromStr for $Name {
            type Err = $crate::options::Unknown;

            fn from_str(text: &str) -> Result<Self, $crate::options::Unknown> {
                use $crate::options::Word as _;
                Self::named(text)
                    .ok_or_else(|| $crate::options::Unknown::new(stringify!($Name), text, Self::NAMES))
            }
        }
    };
}

/// Declares a struct of options: its fields with documentation, type, what is allowed (where the type
/// does not say) and default. A field's name is its option's, unless a text behind it says another.
///
/// After `beside` stand fields that are no options, with their values; after `within` groups of options,
/// each a struct of this kind, whose options are this struct's, too. `check` names a function that knows
/// which values go together.
///
/// ```
/// use acklab_core::options::{Options, Value};
/// use acklab_core::time::Span;
///
/// acklab_core::options! {
///     /// Parameters of a queue.
///     pub struct Config {
///         /// Standing delay that is fine.
///         target: Span as positive_span() = "5ms",
///         /// Weight of the newest length in the average.
///         weight: f64 as positive_share() = "0.002",
///         /// Packets of this many bytes are typical.
///         mean_packet "mean-packet": u32 as count(40, 9000) = "1000",
///     }
/// }
///
/// let mut config = Config { weight: 0.1, ..Config::default() };
/// assert!(config.set("target", Value::Span(Span::from_millis(20))));
/// assert_eq!(config.target, Span::from_millis(20));
/// let names: Vec<_> = config.list().iter().map(|option| option.name).collect();
/// assert_eq!(names, ["target", "weight", "mean-packet"]);
/// ```
#[macro_export]
macro_rules! options {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Name:ident {
            $(
                $(#[doc = $doc:literal])*
                $field:ident $($key:literal)?:
                    $Type:ty $(as $kind:ident($($bound:expr),*))? = $default:literal,
            )*
        }
        $(beside {
            $($(#[$beside_meta:meta])* $beside:ident: $Beside:ty = $value:expr,)*
        })?
        $(within {
            $($(#[$group_meta:meta])* $group:ident: $Group:ty $(= $group_value:expr)?,)*
        })?
        $(check $check:path)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $vis struct $Name {
            $($(#[doc = $doc])* $vis $field: $Type,)*
            $($($(#[$beside_meta])* $vis $beside: $Beside,)*)?
            $($($(#[$group_meta])* $vis $group: $Group,)*)?
        }

        impl $Name {
            const OWN: &'static [$crate::options::Parameter] = &[$(
                $crate::options::Parameter {
                    name: $crate::first!($($key,)? stringify!($field)),
                    kind: $crate::first!(
                        $($crate::options::$kind($($bound),*),)?
                        <$Type as $crate::options::Typed>::KIND
                    ),
                    default: $default,
                    doc: concat!($($doc),*).trim_ascii_start(),
                },
            )*];

            /// Every option with its default, groups last.
            $vis const PARAMETERS: &'static [$crate::options::Parameter] =
                &$crate::options::joined::<_, {
                    Self::OWN.len() $($(+ <$Group>::PARAMETERS.len())*)?
                }>($crate::options::Parameter::NONE, &[
                    Self::OWN,
                    $($(<$Group>::PARAMETERS,)*)?
                ]);
        }

        impl Default for $Name {
            fn default() -> Self {
                Self {
                    $($field: <$Type as $crate::options::Typed>::declared(
                        $crate::first!(
                            $($crate::options::$kind($($bound),*),)?
                            <$Type as $crate::options::Typed>::KIND
                        ),
                        $default,
                    ),)*
                    $($($beside: $value,)*)?
                    $($($group: $crate::first!($($group_value,)? <$Group>::default()),)*)?
                }
            }
        }

        impl $crate::options::Options for $Name {
            fn list(&self) -> Vec<$crate::options::Parameter<$crate::options::Value>> {
                let values = [$($crate::options::Typed::to_value(&self.$field),)*];
                let own = Self::OWN.iter().zip(values).map(|(one, value)| one.with_default(value));
                own$($(.chain(self.$group.list()))*)?.collect()
            }

            fn set(&mut self, name: &str, value: $crate::options::Value) -> bool {
                // A struct without options would not use them.
                let _ = (name, value);
                $(if name == $crate::first!($($key,)? stringify!($field)) {
                    let value = <$Type as $crate::options::Typed>::from_value(value);
                    return value.map(|value| self.$field = value).is_some();
                })*
                false $($(|| self.$group.set(name, value))*)?
            }

            fn check(&self) -> Result<(), $crate::options::Conflict> {
                $($(self.$group.check()?;)*)?
                $($check(self)?;)?
                Ok(())
            }
        }
    };
}

/// The first of its arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! first {
    ($first:expr $(, $rest:expr)* $(,)?) => {
        $first
    };
}
