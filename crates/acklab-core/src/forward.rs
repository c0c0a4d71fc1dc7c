//! [`forward!`](crate::forward!): verbs of a trait that a field answers.
//!
//! A relative of Reno differs from it in what it does on a loss or a mark; its window is Reno's. Such a type
//! names the verbs that it leaves to its field, and writes only those that are different.

/// Verbs of [`CongestionControl`](crate::cc::CongestionControl) or [`Queue`](crate::queue::Queue) that a field
/// answers, in the `impl` block of the trait.
///
/// ```
/// use acklab_core::cc::{AckSample, CongestionControl, reno::Reno};
/// use acklab_core::time::Time;
///
/// /// Reno that never hears of an ACK.
/// struct Deaf(Reno);
///
/// impl CongestionControl for Deaf {
///     fn on_ack(&mut self, _now: Time, _sample: &AckSample) {}
///
///     acklab_core::forward! { 0: on_loss on_ecn on_rto cwnd snapshot }
/// }
/// ```
#[macro_export]
macro_rules! forward {
    ($field:tt: $($verb:ident)+) => {
        $($crate::forward!(@$verb $field);)+
    };
    (@on_ack $field:tt) => { $crate::forward!(@sample $field on_ack AckSample); };
    (@on_loss $field:tt) => { $crate::forward!(@sample $field on_loss LossSample); };
    (@on_ecn $field:tt) => { $crate::forward!(@sample $field on_ecn EcnSample); };
    (@on_rto $field:tt) => { $crate::forward!(@sample $field on_rto RtoSample); };
    (@sample $field:tt $verb:ident $sample:ident) => {
        fn $verb(&mut self, now: $crate::time::Time, sample: &$crate::cc::$sample) {
            $crate::cc::CongestionControl::$verb(&mut self.$field, now, sample);
        }
    };
    (@on_idle $field:tt) => {
        fn on_idle(&mut self, now: $crate::time::Time) {
            $crate::cc::CongestionControl::on_idle(&mut self.$field, now);
        }
    };
    (@cwnd $field:tt) => { $crate::forward!(@get $field cwnd u64); };
    (@snapshot $field:tt) => { $crate::forward!(@get $field snapshot $crate::cc::Snapshot); };
    (@packets $field:tt) => { $crate::forward!(@get $field packets u32); };
    (@bytes $field:tt) => { $crate::forward!(@get $field bytes u64); };
    (@get $field:tt $verb:ident $kind:ty) => {
        fn $verb(&self) -> $kind {
            self.$field.$verb()
        }
    };
}
