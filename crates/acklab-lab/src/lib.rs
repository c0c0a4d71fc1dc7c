//! Scenario -> plan -> run -> results -> report.
