//! The registries: everything of one kind that can be chosen by name, one line each.

/// Declares what can be chosen by name, one line each: documentation, name, variant with its options,
/// state that is built of them. Then the lines go to `$build`, which knows how states are built.
macro_rules! registry {
    (
        $(#[$meta:meta])*
        pub enum $Choice:ident, a $what:literal, built by $build:ident: dyn $Trait:ident
            from $context:ident: $Context:ty;
        $(
            $(#[doc = $doc:literal])*
            $name:literal $Variant:ident $(($options:ident: $Options:ty))? => $State:ty;
        )+
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub enum $Choice {
            $($(#[doc = $doc])* $Variant $(($Options))?,)+
            /// A user's own.
            Custom(Factory),
        }

        /// Builds a user's own each time that one is needed.
        #[derive(Clone)]
        pub struct Factory(
            ::std::sync::Arc<dyn Fn($Context) -> Box<dyn $Trait + Send> + Send + Sync>,
        );

        impl Factory {
            /// A factory from a closure.
            pub fn new(
                build: impl Fn($Context) -> Box<dyn $Trait + Send> + Send + Sync + 'static,
            ) -> Self {
                Self(::std::sync::Arc::new(build))
            }

            /// A fresh one.
            pub fn build(&self, $context: $Context) -> Box<dyn $Trait + Send> {
                (self.0)($context)
            }
        }

        impl ::std::fmt::Debug for Factory {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str("Factory")
            }
        }

        impl $Choice {
            /// The names of the built-in ones.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// All built-in ones with their default options.
            pub fn all() -> Vec<Self> {
                vec![$(Self::$Variant $((<$Options>::default()))?),+]
            }

            /// Its name.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$Variant { .. } => $name,)+
                    Self::Custom(_) => "custom",
                }
            }

            /// What it is, and where it is from.
            pub const fn doc(&self) -> &'static str {
                match self {
                    $(Self::$Variant { .. } => concat!($($doc),*).trim_ascii_start(),)+
                    Self::Custom(_) => "",
                }
            }

            /// Its options, if it has any.
            pub fn options(&mut self) -> Option<&mut dyn $crate::options::Options> {
                match self {
                    $($(Self::$Variant($options) => {
                        // The type says that it is one.
                        let own: &mut $Options = $options;
                        Some(own)
                    })?)+
                    _ => None,
                }
            }
        }

        /// By name, with the default options.
        impl ::std::str::FromStr for $Choice {
            type Err = $crate::options::Unknown;

            fn from_str(name: &str) -> Result<Self, $crate::options::Unknown> {
                let known = Self::NAMES.iter().find(|known| $crate::options::spells(name, known));
                match known.copied() {
                    $(Some($name) => Ok(Self::$Variant $((<$Options>::default()))?),)+
                    _ => Err($crate::options::Unknown::new($what, name, Self::NAMES)),
                }
            }
        }

        impl $crate::options::Typed for $Choice {
            const KIND: $crate::options::Kind = $crate::options::Kind::Choice(Self::NAMES);

            fn from_value(value: $crate::options::Value) -> Option<Self> {
                match value {
                    $crate::options::Value::Choice(name) => name.parse().ok(),
                    _ => None,
                }
            }

            fn to_value(&self) -> $crate::options::Value {
                $crate::options::Value::Choice(self.name())
            }
        }

        /// `None` is `auto`: what fits the rest.
        impl $crate::options::Typed for Option<$Choice> {
            const KIND: $crate::options::Kind = {
                const AUTO: [&str; $Choice::NAMES.len() + 1] =
                    $crate::options::joined("", &[&["auto"], $Choice::NAMES]);
                $crate::options::Kind::Choice(&AUTO)
            };

            fn from_value(value: $crate::options::Value) -> Option<Self> {
                match value {
                    $crate::options::Value::Choice("auto") => Some(None),
                    _ => <$Choice as $crate::options::Typed>::from_value(value).map(Some),
                }
            }

            fn to_value(&self) -> $crate::options::Value {
                let name = self.as_ref().map_or("auto", |choice| choice.name());
                $crate::options::Value::Choice(name)
            }
        }

        $build! {
            $Choice from $context: $Context;
            $($(#[doc = $doc])* $Variant $(($options: $Options))? => $State;)+
        }
    };
}

pub(crate) use registry;

/// The states of a registry as an enum, so that calls to the built-in ones need no pointer.
macro_rules! dispatched {
    (
        $Choice:ident => $(#[$meta:meta])* $Built:ident: dyn $Trait:ident, $build:ident
            from $context:ident: $Context:ty;
        $(
            $(#[$doc:meta])*
            $Variant:ident $(($options:ident: $Options:ty))? => $State:ty;
        )+
    ) => {
        impl $Choice {
            /// Builds the state of one connection.
            pub fn $build(&self, $context: $Context) -> $Built {
                match self {
                    $(Self::$Variant $(($options))? => $Built::$Variant(
                        <$State>::new($context $(, *$options)?)
                    ),)+
                    Self::Custom(factory) => $Built::Custom(factory.build($context)),
                }
            }
        }

        $(#[$meta])*
        pub enum $Built {
            $($(#[$doc])* $Variant($State),)+
            /// A user's own.
            Custom(Box<dyn $Trait + Send>),
        }

        impl ::std::fmt::Debug for $Built {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    $(Self::$Variant(state) => state.fmt(f),)+
                    Self::Custom(_) => f.write_str("Custom"),
                }
            }
        }

        macro_rules! each {
            ($built:expr, $inner:ident => $call:expr) => {
                match $built {
                    $($Built::$Variant($inner) => $call,)+
                    $Built::Custom($inner) => $call,
                }
            };
        }
    };
}

pub(crate) use dispatched;
