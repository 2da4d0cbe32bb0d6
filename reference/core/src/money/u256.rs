//! 256-bit arithmetic: the product and the quotient of an exact quote.

/// A 256-bit number: the product of two 128-bit numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct U256 {
    high: u128,
    low: u128,
}

impl U256 {
    /// Returns `a` × `b`, computed from the products of their 64-bit halves.
    pub(super) fn product(a: u128, b: u128) -> U256 {
        const LOW_HALF: u128 = u64::MAX as u128;
        let (a1, a0, b1, b0) = (a >> 64, a & LOW_HALF, b >> 64, b & LOW_HALF);
        let low = a0 * b0;
        let middle = a1 * b0 + (low >> 64);
        let middle_low = a0 * b1 + (middle & LOW_HALF);
        U256 {
            high: a1 * b1 + (middle >> 64) + (middle_low >> 64),
            low: (middle_low << 64) | (low & LOW_HALF),
        }
    }

    /// Returns quotient and remainder; `None` if the quotient needs more than 128 bits.
    fn div_rem(self, divisor: u128) -> Option<(u128, u128)> {
        if self.high >= divisor {
            return None;
        }
        if self.high == 0 {
            return Some((self.low / divisor, self.low % divisor));
        }
        // Long division, a bit at a time.
        let (mut quotient, mut rest) = (0, self.high);
        for bit in (0..128).rev() {
            let carry = rest >> 127;
            rest = (rest << 1) | ((self.low >> bit) & 1);
            if carry == 1 || rest >= divisor {
                rest = rest.wrapping_sub(divisor);
                quotient |= 1 << bit;
            }
        }
        Some((quotient, rest))
    }

    /// Returns the quotient rounded down; `None` if it needs more than 128 bits.
    pub(super) fn floor_div(self, divisor: u128) -> Option<u128> {
        Some(self.div_rem(divisor)?.0)
    }

    /// Returns the quotient rounded up; `None` if it needs more than 128 bits.
    pub(super) fn ceil_div(self, divisor: u128) -> Option<u128> {
        let (quotient, rest) = self.div_rem(divisor)?;
        if rest == 0 { Some(quotient) } else { quotient.checked_add(1) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn dividing_a_product_by_one_factor_returns_the_other(a: u128, b in 1_u128.., c: u128) {
            let product = U256::product(a, b);
            prop_assert_eq!(product.div_rem(b), Some((a, 0)));
            let rest = c % b;
            let (low, carry) = product.low.overflowing_add(rest);
            let sum = U256 { high: product.high + u128::from(carry), low };
            prop_assert_eq!(sum.div_rem(b), Some((a, rest)));
        }
    }
}
