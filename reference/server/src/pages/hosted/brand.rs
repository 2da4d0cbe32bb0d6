//! Style sheets with an account's colour, because pages may contain no inline styles.

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header::CACHE_CONTROL};

use crate::{
    pages::asset::CACHE_FOREVER,
    response::{self, HttpResponse},
};

/// Responds to `/assets/brand-{rrggbb}.css`; `None` for another name.
pub(in crate::pages) fn brand_css(file_name: &str) -> Option<HttpResponse> {
    let digits = file_name.strip_prefix("brand-")?.strip_suffix(".css")?;
    let is_hex = digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
    let rgb = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    let text_color = if is_bright(rgb) { "#10201a" } else { "#ffffff" };
    let css = format!(":root{{--brand:#{digits};--brand-ink:{text_color}}}\n");
    let mut response = response::with_media_type(
        StatusCode::OK,
        HeaderValue::from_static("text/css; charset=utf-8"),
        Bytes::from(css),
    );
    response.headers_mut().insert(CACHE_CONTROL, CACHE_FOREVER);
    Some(response)
}

/// Returns `true` if dark text is easier to read on the colour than white text.
fn is_bright(rgb: u32) -> bool {
    let squared_channel = |shift: u32| {
        let channel = rgb >> shift & 0xff;
        channel * channel
    };
    // Luminance in ten-thousandths, with a gamma of 2, which gives slightly too high values. With these, dark and white
    // text are equally readable at 0.22.
    let luminance = 2_126 * u64::from(squared_channel(16))
        + 7_152 * u64::from(squared_channel(8))
        + 722 * u64::from(squared_channel(0));
    luminance > 2_200 * 255 * 255
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_readable_on_the_brand_colour() {
        for (rgb, expected) in [
            (0x000000, false),
            (0xffffff, true),
            (0x1f6feb, false),
            (0xffd400, true),
            (0x00aa55, true),
            (0x7a1f6f, false),
        ] {
            assert_eq!(is_bright(rgb), expected, "{rgb:06x}");
        }
    }

    #[test]
    fn only_a_colour_has_a_style_sheet() {
        assert!(brand_css("brand-1f6feb.css").is_some());
        for file in [
            "brand-.css",
            "brand-1F6FEB.css",
            "brand-1f6fe.css",
            "brand-+1f6fe.css",
            "brand-;}*{x.css",
            "x.css",
        ] {
            assert!(brand_css(file).is_none(), "{file}");
        }
    }
}
