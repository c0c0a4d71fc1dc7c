//! [`metrics!`](crate::metrics): the metrics of a scenario, one line each below what it measures.

/// An array of [`MetricDoc`](crate::measured::MetricDoc): documentation, name, unit.
///
/// ```
/// const METRICS: [acklab_lab::measured::MetricDoc; 1] = acklab_lab::metrics! {
///     /// Messages written; summed.
///     "messages" in "messages";
/// };
/// assert_eq!(METRICS[0].doc, "Messages written; summed.");
/// ```
#[macro_export]
macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $name:literal in $unit:literal;)+) => {
        [$($crate::measured::MetricDoc {
            name: $name,
            unit: $unit,
            doc: concat!($($doc),+).trim_ascii_start(),
        }),+]
    };
}
