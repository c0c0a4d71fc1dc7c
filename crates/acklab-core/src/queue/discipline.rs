//! Disciplines by name: what a scenario chooses and a link builds.

use super::ecn::Treatment;
use super::{
    Limit, Queue, Setup, ack_filter, codel, drop_tail, dualpi2, edctcp, encn, fq_codel, fq_pie,
    jersey, pie, policer, red, threshold,
};
use crate::options::{Typed, Unknown};

crate::options::registry! {
    /// Which discipline a link gets.
    pub enum Discipline, a "queue", built by queues: dyn Queue from setup: &Setup<'_>;

    /// First in, first out.
    "drop-tail" DropTail(options: drop_tail::Options) => drop_tail::DropTail;
    /// Random early detection: Floyd and Jacobson 1993.
    "red" Red(options: red::Options) => red::Red;
    /// Controlled delay: RFC 8289.
    "codel" Codel(options: codel::Options) => codel::Codel;
    /// Proportional integral controller, enhanced: RFC 8033.
    "pie" Pie(options: pie::Options) => pie::Pie;
    /// Flow queues under CoDel, in turn: RFC 8290.
    "fq-codel" FqCodel(options: fq_codel::Options) => fq_codel::FqCodel;
    /// Flow queues under PIE, in turn: RFC 8033 and 8290, Linux's fq_pie.
    "fq-pie" FqPie(options: fq_pie::Options) => fq_pie::FqPie;
    /// A mark while fewer than Qmin wait: CE means that there is *no* congestion.
    "encn" Encn(options: encn::Options) => encn::Encn;
    /// TCP-Jersey's warning: a mark for all while the average is above a threshold.
    "jersey" Jersey(options: jersey::Options) => jersey::Jersey;
    /// A mark above a threshold, and a segment that has no room goes back to its sender: E-DCTCP's switch.
    "edctcp" Edctcp(options: threshold::Options) => edctcp::Edctcp;
    /// A mark above a threshold: the switch of RFC 8257.
    "threshold" Threshold(options: threshold::Options) => threshold::Threshold;
    /// The coupled dual queue of L4S: RFC 9332.
    "dualpi2" DualPi2(options: dualpi2::Options) => dualpi2::DualPi2;
    /// First in, first out, without ACKs that a newer one of their connection makes superfluous: CAKE's filter.
    "ack-filter" AckFilter(options: ack_filter::Options) => ack_filter::AckFilter;
    /// A token bucket without a queue: what exceeds it is dropped.
    "policer" Policer(options: policer::Options) => policer::Policer;
}

/// What every discipline has: room, and a queue to be built.
macro_rules! queues {
    (
        $Choice:ident from $setup:ident: $Setup:ty;
        $($(#[$doc:meta])* $Variant:ident ($options:ident: $Options:ty) => $State:ty;)+
    ) => {
        impl $Choice {
            /// The same discipline with its default options, those that follow the room among them, and
            /// room for `packets` (`u32::MAX`: no limit). A user's own stays as it is.
            #[must_use]
            pub fn for_packets(&self, packets: u32) -> Self {
                match self {
                    $(Self::$Variant(_) => Self::$Variant(<$Options>::packets(packets)),)+
                    Self::Custom(factory) => Self::Custom(factory.clone()),
                }
            }

            /// With another limit. A user's own keeps what it was built with.
            #[must_use]
            pub fn with_limit(mut self, limit: Limit) -> Self {
                match &mut self {
                    $(Self::$Variant(options) => options.limit = limit,)+
                    Self::Custom(_) => {}
                }
                self
            }

            /// An empty queue of this discipline.
            pub fn build(&self, $setup: $Setup) -> Box<dyn Queue + Send> {
                match self {
                    $(Self::$Variant($options) => Box::new(<$State>::new(*$options, $setup)),)+
                    Self::Custom(factory) => factory.build($setup),
                }
            }
        }
    };
}

use queues;

/// Drop-tail without a limit.
impl Default for Discipline {
    fn default() -> Self {
        Self::drop_tail(Limit::NONE)
    }
}

impl Discipline {
    /// First in, first out, up to a limit.
    pub const fn drop_tail(limit: Limit) -> Self {
        Self::DropTail(drop_tail::Options { limit })
    }

    /// The discipline called `name` with its default options and room for `packets` (`u32::MAX`: no
    /// limit).
    pub fn by_name(name: &str, packets: u32) -> Result<Self, Unknown> {
        name.parse::<Self>().map(|discipline| discipline.for_packets(packets))
    }

    /// With another treatment of chosen packets, where the discipline chooses any.
    #[must_use]
    pub fn with_ecn(mut self, ecn: Treatment) -> Self {
        if let Some(options) = self.options() {
            options.set("ecn", ecn.to_value());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_builds_and_another_is_refused_with_the_list() {
        for name in Discipline::NAMES {
            assert!(
                Discipline::by_name(name, 17).is_ok_and(|queue| queue.name() == *name),
                "{name}"
            );
        }
        let refused = Discipline::by_name("reed", 17).unwrap_err().to_string();
        assert!(refused.contains("\"reed\"") && refused.contains("codel"), "{refused}");
    }
}
