//! An order-statistics index of objects by status. Objects are only added; their status may change. A class is a status
//! as a number.
//!
//! Lists and filters need two operations: the number of members up to an anchor (rank), and the
//! member at a position (select). Both cost the same at a thousand and at ten million members:
//! a bit per member and class, and Fenwick trees over the words.

/// Members with ascending numbers, each in one of `CLASSES` classes.
#[derive(Clone, Debug)]
pub struct StatusIndex<const CLASSES: usize> {
    members: Vec<u32>,
    class_of: Vec<u8>,
    classes: [Bits; CLASSES],
}

impl<const CLASSES: usize> Default for StatusIndex<CLASSES> {
    fn default() -> Self {
        StatusIndex {
            members: Vec::new(),
            class_of: Vec::new(),
            classes: std::array::from_fn(|_| Bits::default()),
        }
    }
}

impl<const CLASSES: usize> StatusIndex<CLASSES> {
    /// Adds the newest member.
    ///
    /// # Panics
    ///
    /// If there is a member with the same or a higher number, or if `class` is above 255.
    pub fn push(&mut self, member: u32, class: usize) {
        assert!(
            self.members.last().is_none_or(|&last| last < member),
            "members are added in ascending order"
        );
        self.members.push(member);
        self.class_of.push(u8::try_from(class).expect("class numbers fit 8 bits"));
        for (n, bits) in self.classes.iter_mut().enumerate() {
            bits.push(n == class);
        }
    }

    /// Moves a member to another class. Does nothing if it is not in the index.
    ///
    /// # Panics
    ///
    /// If the member is in the index and `class` is not below `CLASSES`.
    pub fn change(&mut self, member: u32, class: usize) {
        let Ok(position) = self.members.binary_search(&member) else { return };
        let old = usize::from(self.class_of[position]);
        self.class_of[position] = u8::try_from(class).expect("class numbers fit 8 bits");
        self.classes[old].set(position, false);
        self.classes[class].set(position, true);
    }

    /// Returns the number of members of `class` (of all, if it is `None`) with a number up to `anchor`.
    pub fn rank(&self, class: Option<usize>, anchor: u32) -> usize {
        let positions = self.members.partition_point(|&member| member <= anchor);
        match class {
            None => positions,
            Some(class) => self.classes[class].ones_before(positions),
        }
    }

    /// Returns the member of `class` (of all, if it is `None`) with `nth` members of that class before it.
    pub fn select(&self, class: Option<usize>, nth: usize) -> Option<u32> {
        let position = match class {
            None => nth,
            Some(class) => self.classes[class].nth_one(nth)?,
        };
        self.members.get(position).copied()
    }

    /// Returns the newest member of `class` (of all, if it is `None`).
    pub fn newest(&self, class: Option<usize>) -> Option<u32> {
        let count = self.count(class);
        self.select(class, count.checked_sub(1)?)
    }

    /// Returns the number of members of `class` (of all, if it is `None`).
    pub fn count(&self, class: Option<usize>) -> usize {
        match class {
            None => self.members.len(),
            Some(class) => self.classes[class].ones_before(self.members.len()),
        }
    }
}

/// The number of bits in a word.
const WORD: usize = 64;

/// A growing bit vector with rank and select in logarithmic time.
#[derive(Clone, Debug, Default)]
struct Bits {
    words: Vec<u64>,
    /// Fenwick tree over the words' ones: `tree[i]` sums the `lowbit(i + 1)` words that end at `i`.
    tree: Vec<u32>,
    len: usize,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(WORD) {
            self.words.push(0);
            // A new node sums the complete nodes below it; its own word is still empty.
            let i = self.tree.len() + 1;
            let mut sum = 0;
            let mut child = 1;
            while child < lowbit(i) {
                sum += self.tree[i - child - 1];
                child <<= 1;
            }
            self.tree.push(sum);
        }
        let position = self.len;
        self.len += 1;
        if bit {
            self.set(position, true);
        }
    }

    fn set(&mut self, position: usize, bit: bool) {
        let (word, mask) = (position / WORD, 1_u64 << (position % WORD));
        if (self.words[word] & mask != 0) == bit {
            return;
        }
        self.words[word] ^= mask;
        let mut i = word + 1;
        while i <= self.tree.len() {
            let node = &mut self.tree[i - 1];
            *node = if bit { *node + 1 } else { *node - 1 };
            i += lowbit(i);
        }
    }

    /// Returns the number of ones in the first `positions` bits.
    fn ones_before(&self, positions: usize) -> usize {
        let (word, rest) = (positions / WORD, positions % WORD);
        let mut sum = match rest {
            0 => 0,
            _ => (self.words[word] & ((1 << rest) - 1)).count_ones() as usize,
        };
        let mut i = word;
        while i > 0 {
            sum += self.tree[i - 1] as usize;
            i -= lowbit(i);
        }
        sum
    }

    /// Returns the position of the one with `nth` ones before it.
    fn nth_one(&self, nth: usize) -> Option<usize> {
        let mut left = nth;
        let mut word = 0;
        let mut step = self.tree.len().checked_next_power_of_two()?;
        while step > 0 {
            let end = word + step;
            if let Some(&ones) = self.tree.get(end.wrapping_sub(1))
                && (ones as usize) <= left
            {
                left -= ones as usize;
                word = end;
            }
            step /= 2;
        }
        let mut bits = *self.words.get(word)?;
        for _ in 0..left {
            bits &= bits - 1;
        }
        (bits != 0).then(|| word * WORD + bits.trailing_zeros() as usize)
    }
}

/// Returns the lowest one bit of `i`, as a number.
const fn lowbit(i: usize) -> usize {
    i & i.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Change {
        Push { gap: u32, class: usize },
        Move { pick: usize, class: usize },
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            3 => (0_u32..3, 0_usize..3).prop_map(|(gap, class)| Change::Push { gap, class }),
            1 => (any::<usize>(), 0_usize..3).prop_map(|(pick, class)| Change::Move { pick, class }),
        ]
    }

    proptest! {
        #[test]
        fn the_index_returns_the_same_as_a_scan(changes in prop::collection::vec(change(), 0..400)) {
            let mut index = StatusIndex::<3>::default();
            let mut scanned: Vec<(u32, usize)> = Vec::new();
            for change in changes {
                match change {
                    Change::Push { gap, class } => {
                        let member = scanned.last().map_or(gap, |(last, _)| last + 1 + gap);
                        scanned.push((member, class));
                        index.push(member, class);
                    }
                    Change::Move { pick, class } if !scanned.is_empty() => {
                        let position = pick % scanned.len();
                        scanned[position].1 = class;
                        index.change(scanned[position].0, class);
                    }
                    Change::Move { .. } => {}
                }
            }
            index.change(u32::MAX, 0);
            for class in [None, Some(0), Some(1), Some(2)] {
                let of_class: Vec<u32> = scanned.iter()
                    .filter(|(_, c)| class.is_none_or(|class| class == *c))
                    .map(|(member, _)| *member).collect();
                prop_assert_eq!(index.count(class), of_class.len());
                prop_assert_eq!(index.newest(class), of_class.last().copied());
                for (nth, &member) in of_class.iter().enumerate() {
                    prop_assert_eq!(index.select(class, nth), Some(member));
                    prop_assert_eq!(index.rank(class, member), nth + 1);
                }
                prop_assert_eq!(index.select(class, of_class.len()), None);
            }
        }
    }
}
