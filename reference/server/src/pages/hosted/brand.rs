//! Style sheets with an account's colour, because pages may contain no inline styles.

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header::CACHE_CONTROL};

use crate::{
    answer::{self, Answer},
    pages::asset::CACHE_FOREVER,
};

/// Answers `/assets/brand-{rrggbb}.css`; `None` for another name.
pub(in crate::pages) fn brand(file: &str) -> Option<Answer> {
    let digits = file.strip_prefix("brand-")?.strip_suffix(".css")?;
    let is_hex = digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
    let rgb = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    let ink = if is_bright(rgb) { "#10201a" } else { "#ffffff" };
    let css = format!(":root{{--brand:#{digits};--brand-ink:{ink}}}\n");
    let mut answer = answer::with_media_type(
        StatusCode::OK,
        HeaderValue::from_static("text/css; charset=utf-8"),
        Bytes::from(css),
    );
    answer.headers_mut().insert(CACHE_CONTROL, CACHE_FOREVER);
    Some(answer)
}

/// Returns `true` if dark text is easier to read on the colour than white text.
fn is_bright(rgb: u32) -> bool {
    let square = |shift: u32| {
        let part = rgb >> shift & 0xff;
        part * part
    };
    // Luminance in ten-thousandths, with a gamma of 2, which gives slightly too high values; with it, both are equally
    // readable at 0.22.
    let luminance = 2_126 * u64::from(square(16)) + 7_152 * u64::from(square(8)) + 722 * u64::from(square(0));
    luminance > 2_200 * 255 * 255
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_readable_on_the_brand_colour() {
        for (rgb, bright) in [
            (0x000000, false),
            (0xffffff, true),
            (0x1f6feb, false),
            (0xffd400, true),
            (0x00aa55, true),
            (0x7a1f6f, false),
        ] {
            assert_eq!(is_bright(rgb), bright, "{rgb:06x}");
        }
    }

    #[test]
    fn only_a_colour_has_a_style_sheet() {
        assert!(brand("brand-1f6feb.css").is_some());
        for file in [
            "brand-.css",
            "brand-1F6FEB.css",
            "brand-1f6fe.css",
            "brand-+1f6fe.css",
            "brand-;}*{x.css",
            "x.css",
        ] {
            assert!(brand(file).is_none(), "{file}");
        }
    }
}
