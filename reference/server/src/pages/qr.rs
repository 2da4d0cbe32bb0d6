//! [`Qr`]: QR codes as an SVG path.

use std::fmt::Write;

use qrcode::{Color, EcLevel, QrCode};

/// The width of the white border in modules (the squares of a code), as the standard requires.
const BORDER: usize = 4;

/// A QR code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Qr {
    /// The number of modules on each side, including the border.
    pub(crate) size: usize,
    /// The dark modules as an SVG path, in modules.
    pub(crate) path: String,
}

impl Qr {
    /// Encodes a string; `None` if it is too long for a QR code.
    pub(crate) fn encode(text: &str) -> Option<Qr> {
        let code = QrCode::with_error_correction_level(text, EcLevel::M).ok()?;
        let width = code.width();
        let mut path = String::new();
        for (y, row) in code.to_colors().chunks(width).enumerate() {
            let mut x = 0;
            for run in row.chunk_by(|a, b| a == b) {
                if run[0] == Color::Dark {
                    let _ = write!(path, "M{} {}h{}v1h-{}z", x + BORDER, y + BORDER, run.len(), run.len());
                }
                x += run.len();
            }
        }
        Some(Qr { size: width + 2 * BORDER, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_finder_patterns_in_three_corners_and_a_border() {
        let qr = Qr::encode("bitcoin:bc1qexample?amount=0.0025").expect("the string is short enough");
        // Version 3 at this level: 29 modules.
        assert_eq!(qr.size, 29 + 2 * BORDER);
        assert!(qr.path.starts_with("M4 4h7v1h-7z"), "{}", qr.path);
        assert!(qr.path.contains("M26 4h7v1h-7z"), "{}", qr.path);
        assert!(qr.path.contains("M4 26h7v1h-7z"), "{}", qr.path);
    }

    #[test]
    fn a_string_that_is_too_long_has_no_code() {
        assert_eq!(Qr::encode(&"x".repeat(5_000)), None);
    }
}
