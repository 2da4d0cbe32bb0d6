//! Page addresses that merchants provide and responses return verbatim.

/// Returns `true` if a string is a URL for every parser. A successful parse is not enough: the rules of browsers repair
/// what others refuse (spaces, letters beyond ASCII, `https:shop`), and the text is returned verbatim.
pub(crate) fn is_web_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let schemes = ["http", "https"];
    if !schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known)) || url::Url::parse(text).is_err() {
        return false;
    }
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%".contains(&b);
    let percents = rest.match_indices('%').all(|(at, _)| {
        let digits = rest.as_bytes().get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    let in_path = |b: u8| plain(b) || b"/?#".contains(&b);
    !host.is_empty()
        && percents
        && host.bytes().all(|b| plain(b) || b"[]".contains(&b))
        && path.bytes().all(in_path)
        && path.matches('#').count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_address_is_a_url_for_every_parser() {
        for good in [
            "https://shop.example",
            "HTTP://shop.example:8080/a/b?c=d&e=%20#f",
            "http://127.0.0.1:3000/thanks",
            "https://[::1]/?a",
        ] {
            assert!(is_web_address(good), "{good}");
        }
        for bad in [
            "",
            "shop.example",
            "ftp://shop.example",
            "https:shop.example",
            "https://",
            "https:///x",
            "https://Ï",
            " https://shop.example",
            "https://shop.example/a b",
            "https://shop.example/%2",
            "https://shop.example/[a]",
            "https://shop.example/#a#b",
            "https://shop.example/\\",
        ] {
            assert!(!is_web_address(bad), "{bad}");
        }
    }
}
