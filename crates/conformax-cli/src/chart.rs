//! Bars of text.

/// A bar of up to sixteen characters for a share between 0 and 1.
pub(crate) fn bar(share: f64) -> String {
    const WIDTH: f64 = 16.0;
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if share.is_nan() {
        return String::new();
    }
    let eighths = (share.clamp(0.0, 1.0) * WIDTH * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_are_as_long_as_shares_are_large() {
        assert_eq!(bar(1.0).chars().count(), 16);
        assert_eq!(bar(0.5), "████████");
        assert_eq!(bar(1.0 / 128.0), "▏");
        assert_eq!((bar(0.0), bar(f64::NAN), bar(7.0)), (String::new(), String::new(), bar(1.0)));
    }
}
