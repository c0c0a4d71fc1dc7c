//! From a [`Plot`] to the Vega-Lite specification and the columns it draws.
//!
//! The page's script turns columns into the row objects that Vega-Lite reads, so that a series of
//! 1,000 points costs its digits and not 1,000 copies of its field names. Field names are fixed
//! here; words from outside (titles, series names, labels) only ever become values.
//!
//! Colours are the page's CSS variables. Series take the Okabe-Ito colours, which people with any
//! colour blindness can tell apart, and a dash pattern each.

use serde_json::{Value, json};

use super::plot::{
    Band, BoxOf, Boxes, Cdf, CdfSeries, ErrorBar, Histogram, LineSeries, Lines, Mark, Plot,
    SegmentKind, TimeSequence,
};

/// What the page's script needs to draw `plot`: `{"spec": …, "data": {name: columns}}`.
pub(super) fn drawing(plot: &Plot) -> Value {
    match plot {
        Plot::Cdf(cdf) => cdf_drawing(cdf),
        Plot::TimeSequence(sequence) => time_sequence_drawing(sequence),
        Plot::Histogram(histogram) => histogram_drawing(histogram),
        Plot::Lines(lines) => lines_drawing(lines),
        Plot::Boxes(boxes) => boxes_drawing(boxes),
    }
}

fn cdf_drawing(cdf: &Cdf) -> Value {
    let names: Vec<&str> = cdf.series.iter().map(|series| series.name.as_str()).collect();
    let x_max = cdf
        .series
        .iter()
        .flat_map(|series| &series.points)
        .map(|point| point.0)
        .fold(0.0, f64::max);
    let widths = widths(&cdf.series);
    let line = |data: &str, interpolate: &str| {
        let mut layer = json!({
            "data": {"name": data},
            "mark": {"type": "line", "interpolate": interpolate, "strokeWidth": THIN, "clip": true},
            "encoding": {
                "x": {"field": "x", "type": "quantitative", "title": cdf.x_title},
                "y": {"field": "y", "type": "quantitative", "title": "share at or below",
                      "axis": {"format": ".0%"}, "scale": {"domain": [0, 1]}},
                "color": series_colour(&names),
                "strokeDash": series_dash(&names),
            },
        });
        if widths.iter().any(|width| *width > THIN) {
            layer["encoding"]["strokeWidth"] = by_series(&names, |index| json!(widths[index]));
        }
        layer
    };
    let columns = |straight: bool| {
        let series = cdf.series.iter().filter(|series| series.straight == straight);
        let lines: Vec<(&str, Vec<(f64, f64)>)> = series
            .map(|series| (series.name.as_str(), whole_line(&series.points, x_max)))
            .collect();
        let points = || lines.iter().flat_map(|line| &line.1);
        let names: Vec<&str> = lines.iter().map(|line| line.0).collect();
        json!({
            "x": numbers(points().map(|point| point.0), 5),
            "y": numbers(points().map(|point| point.1), 5),
            "s": words(&names, lines.iter().map(|line| line.1.len())),
        })
    };
    let data = json!({
        "steps": columns(false),
        "curves": columns(true),
        "marks": mark_columns(&cdf.marks, x_max),
    });
    let layers = vec![line("steps", "step-after"), line("curves", "linear")];
    drawing_of(280, &with_marks(layers, &cdf.marks, 240), &data)
}

/// How wide each line is: wider where a later one lies on it, so that both are seen.
fn widths(series: &[CdfSeries]) -> Vec<f64> {
    let above = |index: usize| {
        let later = &series[index + 1..];
        later.iter().filter(|other| lies_on(&other.points, &series[index].points)).count()
    };
    (0..series.len()).map(|index| THIN + 2.6 * above(index) as f64).collect()
}

/// Whether two distributions look the same: at every tenth of the shares their values differ by less than a hundredth
/// of the greater one's largest.
fn lies_on(left: &[(f64, f64)], right: &[(f64, f64)]) -> bool {
    let at = |points: &[(f64, f64)], share: f64| {
        let reached = points.iter().find(|point| point.1 >= share);
        reached.or(points.last()).map_or(f64::NAN, |point| point.0)
    };
    let largest = at(left, 1.0).max(at(right, 1.0));
    (1..=10).map(|tenth| f64::from(tenth) / 10.0).all(|share| {
        let apart = (at(left, share) - at(right, share)).abs();
        apart <= 0.01 * largest
    })
}

/// `points` from 0 up to the first and from the last along the top to `x_max`, so that even a single
/// point is seen.
fn whole_line(points: &[(f64, f64)], x_max: f64) -> Vec<(f64, f64)> {
    let mut line = Vec::with_capacity(points.len() + 2);
    line.extend(points.first().map(|first| (first.0, 0.0)));
    line.extend_from_slice(points);
    line.extend(points.last().map(|last| (x_max, last.1)));
    line
}

fn lines_drawing(lines: &Lines) -> Value {
    let names: Vec<&str> = lines.series.iter().map(|series| series.name.as_str()).collect();
    let (areas, drawn) = lines.series.split_at(lines.areas.min(lines.series.len()));
    let mut encoding = json!({
        "x": {"field": "x", "type": "quantitative", "title": lines.x_title, "scale": {"zero": false}},
        "y": {"field": "y", "type": "quantitative", "title": lines.y_title},
        "color": series_colour(&names),
    });
    if lines.log_x {
        encoding["x"]["scale"] = json!({"type": "log"});
    }
    let mut data = json!({"points": series_columns(drawn)});
    let mut layers = Vec::new();
    if !areas.is_empty() {
        data["areas"] = series_columns(areas);
        layers.push(json!({
            "data": {"name": "areas"},
            "mark": {"type": "area", "opacity": 0.35, "line": false},
            "encoding": encoding,
        }));
    }
    if !lines.bands.is_empty() {
        data["bands"] = band_columns(&lines.bands);
        let mut around = encoding.clone();
        around["y"]["field"] = json!("a");
        around["y2"] = json!({"field": "b"});
        layers.push(json!({
            "data": {"name": "bands"},
            "mark": {"type": "area", "opacity": 0.18, "line": false},
            "encoding": around,
        }));
    }
    if lines.solid {
        encoding["strokeDash"] =
            by_series(&names, |index| json!(DASHES[index / SERIES_COLOURS % DASHES.len()]));
    } else if !lines.scatter {
        encoding["strokeDash"] = series_dash(&names);
    }
    if !lines.intervals.is_empty() {
        data["intervals"] = interval_columns(&lines.intervals);
        layers.push(json!({
            "data": {"name": "intervals"},
            "mark": {"type": "errorbar", "ticks": true},
            "encoding": {
                "x": encoding["x"],
                "y": {"field": "a", "type": "quantitative", "title": lines.y_title},
                "y2": {"field": "b"},
                "color": encoding["color"],
            },
        }));
    }
    layers
        .push(json!({"data": {"name": "points"}, "mark": lines_mark(lines), "encoding": encoding}));
    drawing_of(280, &layers, &data)
}

/// The points of all series in one table.
fn series_columns(series: &[LineSeries]) -> Value {
    let points = || series.iter().flat_map(|series| &series.points);
    let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
    json!({
        "x": numbers(points().map(|point| point.0), 7),
        "y": numbers(points().map(|point| point.1), 5),
        "s": words(&names, series.iter().map(|series| series.points.len())),
    })
}

/// Points show where a line of few was measured, and hide a line of many.
fn lines_mark(lines: &Lines) -> Value {
    match lines.series.iter().map(|series| series.points.len()).max() {
        _ if lines.scatter => {
            json!({"type": "point", "filled": true, "size": 14, "opacity": 0.7, "tooltip": true})
        }
        Some(101..) => json!({"type": "line", "strokeWidth": 1.6, "tooltip": true}),
        Some(61..) => json!({"type": "line", "strokeWidth": 1.5, "point": false}),
        _ => json!({"type": "line", "strokeWidth": 2.2, "point": {"size": 40}}),
    }
}

fn band_columns(bands: &[Band]) -> Value {
    let points = || bands.iter().flat_map(|band| &band.points);
    let names: Vec<&str> = bands.iter().map(|band| band.series.as_str()).collect();
    json!({
        "x": numbers(points().map(|point| point.0), 7),
        "a": numbers(points().map(|point| point.1), 5),
        "b": numbers(points().map(|point| point.2), 5),
        "s": words(&names, bands.iter().map(|band| band.points.len())),
    })
}

fn boxes_drawing(boxes: &Boxes) -> Value {
    let names: Vec<&str> = boxes.series.iter().map(String::as_str).collect();
    let mut categories: Vec<&str> = Vec::new();
    for BoxOf { category, .. } in &boxes.boxes {
        if !categories.contains(&category.as_str()) {
            categories.push(category);
        }
    }
    let x = json!({"field": "c", "type": "nominal", "title": boxes.x_title, "sort": null,
                   "scale": {"domain": categories, "paddingInner": 0.25},
                   "axis": {"labelAngle": 0, "labelLimit": 90, "grid": false}});
    let offset = json!({"field": "s", "type": "nominal", "sort": null,
                        "scale": {"domain": names, "paddingInner": 0.3}});
    let y = |field: &str| json!({"field": field, "type": "quantitative", "title": boxes.y_title, "scale": {"zero": true}});
    let layer = |mark: Value, low: &str, high: Option<&str>| {
        let mut encoding =
            json!({"x": x, "xOffset": offset, "y": y(low), "color": series_colour(&names)});
        if let Some(high) = high {
            encoding["y2"] = json!({"field": high});
        }
        json!({"data": {"name": "boxes"}, "mark": mark, "encoding": encoding})
    };
    let mut layers = vec![
        layer(json!({"type": "rule", "strokeWidth": 1.2}), "low", Some("high")),
        layer(json!({"type": "bar", "opacity": 0.4, "tooltip": true}), "q1", Some("q3")),
        layer(json!({"type": "tick", "thickness": 2, "size": {"expr": "6"}}), "median", None),
        layer(json!({"type": "rule", "strokeWidth": 3}), "from", Some("to")),
        layer(
            json!({"type": "point", "filled": true, "size": 28, "opacity": 1, "tooltip": true}),
            "mean",
            None,
        ),
    ];
    if let Some(limit) = &boxes.limit {
        layers.push(json!({
            "data": {"values": [{"at": limit.at}]},
            "mark": {"type": "rule", "color": "var(--held)", "strokeDash": [5, 4], "strokeWidth": 1.5},
            "encoding": {"y": {"field": "at", "type": "quantitative"}},
        }));
        layers.push(json!({
            "data": {"values": [{"at": limit.at, "label": limit.label}]},
            "mark": {"type": "text", "align": "right", "baseline": "bottom", "dy": -3, "fontSize": 12,
                     "color": "var(--held-ink)", "x": {"expr": "width"}},
            "encoding": {"y": {"field": "at", "type": "quantitative"},
                         "text": {"field": "label", "type": "nominal"}},
        }));
    }
    drawing_of(300, &layers, &json!({"boxes": box_columns(&boxes.boxes)}))
}

fn box_columns(boxes: &[BoxOf]) -> Value {
    let end = |index: usize| numbers(boxes.iter().map(|of| of.ends[index]), 5);
    let mean = |index: usize| {
        numbers(boxes.iter().map(|of| of.mean.map_or(f64::NAN, |mean| mean[index])), 5)
    };
    let once = || boxes.iter().map(|_| 1);
    let categories: Vec<&str> = boxes.iter().map(|of| of.category.as_str()).collect();
    let series: Vec<&str> = boxes.iter().map(|of| of.series.as_str()).collect();
    json!({
        "c": words(&categories, once()), "s": words(&series, once()),
        "low": end(0), "q1": end(1), "median": end(2), "q3": end(3), "high": end(4),
        "mean": mean(0), "from": mean(1), "to": mean(2),
    })
}

fn interval_columns(intervals: &[ErrorBar]) -> Value {
    let names: Vec<&str> = intervals.iter().map(|bar| bar.series.as_str()).collect();
    json!({
        "x": numbers(intervals.iter().map(|bar| bar.x), 7),
        "a": numbers(intervals.iter().map(|bar| bar.low), 5),
        "b": numbers(intervals.iter().map(|bar| bar.high), 5),
        "s": words(&names, names.iter().map(|_| 1)),
    })
}

fn histogram_drawing(histogram: &Histogram) -> Value {
    let counts = &histogram.counts;
    let least = counts.iter().copied().filter(|count| *count > 0).min().unwrap_or(1);
    let most = counts.iter().copied().max().unwrap_or(0);
    // A few dozen late ACKs beside thousands of prompt ones are the very thing to see.
    let skewed = most > 100 * least;
    let (scale, axis) = if skewed {
        let ticks: Vec<u64> = DECADES.into_iter().filter(|tick| *tick <= most).collect();
        (json!({"type": "symlog"}), json!({"values": ticks}))
    } else {
        (json!({"zero": true}), json!({}))
    };
    let domain = [histogram.edges.first(), histogram.edges.last()];
    let y_title = if skewed {
        format!("{} (logarithmic)", histogram.y_title)
    } else {
        histogram.y_title.clone()
    };
    let bars = json!({
        "data": {"name": "bins"},
        "mark": {"type": "bar", "color": "var(--data)", "binSpacing": 1, "tooltip": true},
        "encoding": {
            "x": {"field": "a", "type": "quantitative", "bin": "binned", "title": histogram.x_title, "scale": {"domain": domain}},
            "x2": {"field": "b"},
            "y": {"field": "n", "type": "quantitative", "title": y_title, "scale": scale, "axis": axis},
            "tooltip": [
                {"field": "a", "type": "quantitative", "title": "from"},
                {"field": "b", "type": "quantitative", "title": "to"},
                {"field": "n", "type": "quantitative", "title": histogram.y_title},
            ],
        },
    });
    let filled: Vec<usize> = (0..counts.len()).filter(|&bin| counts[bin] > 0).collect();
    let data = json!({
        "bins": {
            "a": numbers(filled.iter().map(|&bin| histogram.edges[bin]), 6),
            "b": numbers(filled.iter().map(|&bin| histogram.edges[bin + 1]), 6),
            "n": filled.iter().map(|&bin| counts[bin]).collect::<Vec<u64>>(),
        },
        "marks": mark_columns(&histogram.marks, histogram.edges.last().copied().unwrap_or(0.0)),
    });
    drawing_of(260, &with_marks(vec![bars], &histogram.marks, 6), &data)
}

fn time_sequence_drawing(sequence: &TimeSequence) -> Value {
    let shown = legend_entries(sequence);
    let colour = |entry: &str| {
        json!({"datum": entry, "type": "nominal", "title": null,
        "legend": {"values": shown}, "scale": {"domain": SEQUENCE_ENTRIES, "range": SEQUENCE_COLOURS}})
    };
    let x = json!({"field": "t", "type": "quantitative", "title": "time (s)",
                   "scale": {"zero": false, "nice": false, "padding": 8}});
    let y = json!({"field": "a", "type": "quantitative", "title": "byte in the stream",
                   "scale": {"zero": false}, "axis": {"format": ",d"}});
    let line = |data: &str, entry: &str| {
        json!({
            "data": {"name": data},
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5, "clip": true},
            "encoding": {"x": x, "y": y, "color": colour(entry)},
        })
    };
    let waits = json!({
        "data": {"name": "segments"},
        "transform": [{"filter": "isValid(datum.w)"}],
        "mark": {"type": "rule", "strokeWidth": 4, "opacity": 0.45, "clip": true},
        "encoding": {"x": {"field": "w", "type": "quantitative"}, "x2": {"field": "t"}, "y": y,
                     "color": colour(WAITS)},
    });
    let segments = json!({
        "data": {"name": "segments"},
        "mark": {"type": "rule", "strokeWidth": 3.5, "strokeCap": "round", "clip": true},
        "encoding": {"x": x, "y": y, "y2": {"field": "b"},
            "color": {"field": "k", "type": "nominal", "title": null},
            "tooltip": [
                {"field": "f", "type": "quantitative", "title": "frame"},
                {"field": "t", "type": "quantitative", "title": "time (s)"},
                {"field": "n", "type": "quantitative", "title": "bytes"},
                {"field": "h", "type": "quantitative", "title": "held (ms)"},
            ]},
        "params": [{"name": "view", "bind": "scales",
                    "select": {"type": "interval", "zoom": "wheel![event.shiftKey]"}}],
    });
    let layers =
        [line("acks", ACKNOWLEDGED), line("sent", kind_name(SegmentKind::New)), waits, segments];
    drawing_of(340, &layers, &sequence_columns(sequence))
}

/// The entries of the legend that the plot has something of.
fn legend_entries(sequence: &TimeSequence) -> Vec<&'static str> {
    let has = |kind| sequence.segments.iter().any(|segment| segment.kind == kind);
    let present = |entry: &str| match entry {
        ACKNOWLEDGED => !sequence.acks.is_empty(),
        WAITS => sequence.segments.iter().any(|segment| segment.held_ms.is_some()),
        _ if entry == kind_name(SegmentKind::New) => {
            !sequence.sent.is_empty() || has(SegmentKind::New)
        }
        _ if entry == kind_name(SegmentKind::Held) => has(SegmentKind::Held),
        _ => has(SegmentKind::Retransmitted),
    };
    SEQUENCE_ENTRIES.into_iter().filter(|entry| present(entry)).collect()
}

fn sequence_columns(sequence: &TimeSequence) -> Value {
    let segments = &sequence.segments;
    let optional = |values: &mut dyn Iterator<Item = Option<f64>>, digits| -> Vec<Value> {
        values.map(|value| value.map_or(Value::Null, |value| number(value, digits))).collect()
    };
    let held = || segments.iter().map(|segment| segment.held_ms);
    let times = || segments.iter().map(|segment| segment.time_s);
    let kinds: Vec<&str> = segments.iter().map(|segment| kind_name(segment.kind)).collect();
    json!({
        "segments": {
            "t": numbers(times(), 9),
            "w": optional(&mut held().zip(times()).map(|(held, time)| Some(time - held? / 1e3)), 9),
            "a": numbers(segments.iter().map(|segment| segment.from_byte), 15),
            "b": numbers(segments.iter().map(|segment| segment.to_byte), 15),
            "n": numbers(segments.iter().map(|segment| segment.to_byte - segment.from_byte), 15),
            "h": optional(&mut held(), 4),
            "f": segments.iter().map(|segment| segment.frame).collect::<Vec<_>>(),
            "k": words(&kinds, kinds.iter().map(|_| 1)),
        },
        "sent": line_columns(&sequence.sent),
        "acks": line_columns(&sequence.acks),
    })
}

fn kind_name(kind: SegmentKind) -> &'static str {
    match kind {
        SegmentKind::New => SEQUENCE_ENTRIES[0],
        SegmentKind::Held => SEQUENCE_ENTRIES[1],
        SegmentKind::Retransmitted => SEQUENCE_ENTRIES[3],
    }
}

fn line_columns(points: &[(f64, f64)]) -> Value {
    json!({
        // Lines are looked at as a whole: six digits are finer than a pixel.
        "t": numbers(points.iter().map(|point| point.0), 6),
        "a": numbers(points.iter().map(|point| point.1), 15),
    })
}

fn series_colour(names: &[&str]) -> Value {
    by_series(names, |index| json!(format!("var(--series-{})", index % SERIES_COLOURS + 1)))
}

fn series_dash(names: &[&str]) -> Value {
    by_series(names, |index| json!(DASHES[index % DASHES.len()]))
}

/// What tells the series apart; one alone needs no legend.
fn by_series(names: &[&str], look: impl Fn(usize) -> Value) -> Value {
    let range: Vec<Value> = (0..names.len()).map(look).collect();
    let mut encoding = json!({"field": "s", "type": "nominal", "title": null, "sort": null,
                              "scale": {"domain": names, "range": range}});
    if names.len() < 2 {
        encoding["legend"] = Value::Null;
    }
    encoding
}

fn mark_columns(marks: &[Mark], x_max: f64) -> Value {
    json!({
        "x": numbers(marks.iter().map(|mark| mark.at), 6),
        "label": marks.iter().map(|mark| &mark.label).collect::<Vec<_>>(),
        // Words of neighbours stand on two heights, and point to the middle of the plot.
        "row": (0..marks.len()).map(|index| index % 2).collect::<Vec<_>>(),
        "right": marks.iter().map(|mark| mark.at > x_max / 2.0).collect::<Vec<_>>(),
    })
}

/// `layers` with a labelled rule per mark behind them, the words `top_px` from the top: where the kind
/// of plot is likely empty.
fn with_marks(mut layers: Vec<Value>, marks: &[Mark], top_px: u32) -> Vec<Value> {
    if marks.is_empty() {
        return layers;
    }
    let x = json!({"field": "x", "type": "quantitative"});
    layers.insert(0, json!({
        "data": {"name": "marks"},
        "mark": {"type": "rule", "color": "var(--held)", "strokeDash": [5, 4], "strokeWidth": 1.5},
        "encoding": {"x": x},
    }));
    for (filter, align, dx) in [("!datum.right", "left", 5), ("datum.right", "right", -5)] {
        // A rim of the page's colour first, so that words on a line can be read.
        for (stroke, rim_px) in [("var(--card)", 4), ("transparent", 0)] {
            layers.push(json!({
                "data": {"name": "marks"},
                "transform": [{"filter": filter}, {"calculate": format!("{top_px} + 17 * datum.row"), "as": "y"}],
                "mark": {"type": "text", "align": align, "baseline": "top", "dx": dx, "fontSize": 12,
                         "color": "var(--held-ink)", "stroke": stroke, "strokeWidth": rim_px},
                "encoding": {"x": x, "text": {"field": "label", "type": "nominal"},
                             "y": {"field": "y", "type": "quantitative", "scale": null, "axis": null}},
            }));
        }
    }
    layers
}

fn drawing_of(height_px: u32, layers: &[Value], data: &Value) -> Value {
    json!({
        "spec": {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "width": "container",
            "height": height_px,
            "autosize": {"type": "fit-x", "contains": "padding"},
            "layer": layers,
            "config": config(),
        },
        "data": data,
    })
}

fn config() -> Value {
    json!({
        "background": null,
        "font": "system-ui, sans-serif",
        "view": {"stroke": null},
        "axis": {
            "domainColor": "var(--muted)", "tickColor": "var(--muted)", "gridColor": "var(--line)",
            "labelColor": "var(--ink)", "titleColor": "var(--ink)", "labelFontSize": 12,
            "titleFontSize": 13, "titleFontWeight": "normal", "titlePadding": 8,
        },
        "axisX": {"tickCount": 10},
        "legend": {
            "orient": "bottom", "direction": "horizontal", "columns": 3, "symbolType": "stroke",
            "symbolSize": 300, "symbolOpacity": 1, "symbolStrokeWidth": 3, "labelColor": "var(--ink)",
            "labelFontSize": 12, "labelLimit": 320, "columnPadding": 18,
        },
    })
}

fn numbers(values: impl Iterator<Item = f64>, digits: usize) -> Vec<Value> {
    values.map(|value| number(value, digits)).collect()
}

/// `value` with `digits` significant digits, as the shortest JSON number; null if not finite.
fn number(value: f64, digits: usize) -> Value {
    let rounded = format!("{value:.*e}", digits - 1).parse::<f64>().unwrap_or(f64::NAN);
    match rounded {
        _ if !rounded.is_finite() => Value::Null,
        // Whole numbers without ".0", as far as a float counts exactly.
        _ if rounded.fract().abs() < f64::MIN_POSITIVE && rounded.abs() < 9e15 => {
            json!(rounded as i64)
        }
        _ => json!(rounded),
    }
}

/// A column of words as a dictionary: `{"values": […], "index": […]}`, each of `names` repeated by
/// its length.
fn words(names: &[&str], lengths: impl Iterator<Item = usize>) -> Value {
    let mut values: Vec<&str> = Vec::new();
    let mut index: Vec<usize> = Vec::new();
    for (name, length) in names.iter().zip(lengths) {
        let code = values.iter().position(|value| value == name).unwrap_or_else(|| {
            values.push(name);
            values.len() - 1
        });
        index.extend(std::iter::repeat_n(code, length));
    }
    json!({"values": values, "index": index})
}

/// Width of a line.
const THIN: f64 = 2.2;
/// Legend of the time-sequence plot.
const SEQUENCE_ENTRIES: [&str; 5] =
    ["data", "data sent late, after a hold", WAITS, "data sent again", ACKNOWLEDGED];
const WAITS: &str = "data waits in the sender";
const ACKNOWLEDGED: &str = "acknowledged";
/// Their colours.
const SEQUENCE_COLOURS: [&str; 5] =
    ["var(--data)", "var(--held)", "var(--series-5)", "var(--again)", "var(--ack)"];
/// Ticks of a logarithmic count.
const DECADES: [u64; 14] =
    [0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000, 10_000_000];
/// How many `--series-N` colours the page's style sheet defines.
const SERIES_COLOURS: usize = 7;
/// Dash patterns that stay apart in black and white.
const DASHES: [&[u8]; 5] = [&[1, 0], &[8, 4], &[2, 3], &[10, 3, 2, 3], &[5, 2]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_nan() {
        let shown = |value, digits| number(value, digits).to_string();
        assert_eq!(shown(0.123_456_789, 4), "0.1235");
        assert_eq!(shown(200.0, 5), "200");
        assert_eq!(shown(-0.0, 5), "0");
        assert_eq!(shown(f64::NAN, 5), "null");
        assert_eq!(shown(123_456.789, 9), "123456.789");
    }

    #[test]
    fn words_are_stored_once() {
        let column = words(&["a", "b", "a"], [2, 1, 1].into_iter());
        assert_eq!(column, json!({"values": ["a", "b"], "index": [0, 0, 1, 0]}));
    }

    #[test]
    fn every_series_has_a_colour_of_the_style_sheet() {
        let css = include_str!("../../templates/report.css");
        for index in 1..=SERIES_COLOURS {
            assert!(css.contains(&format!("--series-{index}:")), "{index}");
        }
        assert!(!css.contains(&format!("--series-{}:", SERIES_COLOURS + 1)));
    }

    #[test]
    fn what_lies_on_another_line_leaves_it_to_be_seen() {
        let of =
            |points: &[(f64, f64)]| CdfSeries { points: points.to_vec(), ..CdfSeries::default() };
        let steps =
            [of(&[(1.0, 0.5), (2.0, 1.0)]), of(&[(1.01, 0.5), (2.0, 1.0)]), of(&[(0.0, 1.0)])];
        let found = widths(&steps);
        let off = found.iter().zip([4.8, 2.2, 2.2]).map(|(is, want)| (is - want).abs());
        assert!(off.fold(0.0, f64::max) < 1e-9, "{found:?}");
    }

    #[test]
    fn no_two_things_of_a_time_sequence_have_one_colour() {
        for (index, colour) in SEQUENCE_COLOURS.iter().enumerate() {
            assert!(!SEQUENCE_COLOURS[..index].contains(colour), "{colour}");
        }
    }

    #[test]
    fn one_series_needs_no_legend() {
        let series = CdfSeries { name: "one".into(), points: vec![(0.0, 1.0)], straight: false };
        let cdf = Cdf { series: vec![series], ..Cdf::default() };
        let drawing = drawing(&Plot::Cdf(cdf));
        assert!(drawing["spec"]["layer"][0]["encoding"]["color"]["legend"].is_null());
    }

    #[test]
    fn a_distribution_of_one_value_is_a_line_and_not_a_point() {
        assert_eq!(whole_line(&[(0.0, 1.0)], 40.0), [(0.0, 0.0), (0.0, 1.0), (40.0, 1.0)]);
        assert_eq!(whole_line(&[], 40.0), []);
    }

    #[test]
    fn skewed_counts_are_drawn_on_a_logarithmic_axis() {
        let histogram = |counts: Vec<u64>| {
            let edges = (0..=counts.len()).map(|edge| edge as f64).collect();
            drawing(&Plot::Histogram(Histogram { edges, counts, ..Histogram::default() }))
        };
        let scale = |drawing: &Value| {
            drawing["spec"]["layer"][0]["encoding"]["y"]["scale"]["type"]
                .as_str()
                .map(str::to_owned)
        };
        assert_eq!(scale(&histogram(vec![5000, 0, 20])).as_deref(), Some("symlog"));
        assert_eq!(scale(&histogram(vec![50, 0, 20])), None);
    }
}
