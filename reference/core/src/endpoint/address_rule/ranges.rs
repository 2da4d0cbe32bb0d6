//! The ranges that are not the open internet, after IANA's special-purpose registries.
//!
//! IPv4 is public unless listed. IPv6 is the opposite: only 2000::/3 has been allocated, so
//! all other addresses are refused without being listed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Range, Refusal};

/// Addresses that share their first bits with `start`.
struct Block<Address> {
    start: Address,
    bits: u32,
    range: Range,
}

const fn v4([a, b, c, d]: [u8; 4], bits: u32, range: Range) -> Block<Ipv4Addr> {
    Block { start: Ipv4Addr::new(a, b, c, d), bits, range }
}

/// Creates a block from the first three and the last two of the eight groups of its start; the other groups are zero.
const fn v6([a, b, c]: [u16; 3], [g, h]: [u16; 2], bits: u32, range: Range) -> Block<Ipv6Addr> {
    Block { start: Ipv6Addr::new(a, b, c, 0, 0, 0, g, h), bits, range }
}

impl Block<Ipv4Addr> {
    fn contains(&self, ip: Ipv4Addr) -> bool {
        (self.start.to_bits() ^ ip.to_bits()).leading_zeros() >= self.bits
    }
}

impl Block<Ipv6Addr> {
    fn contains(&self, ip: Ipv6Addr) -> bool {
        (self.start.to_bits() ^ ip.to_bits()).leading_zeros() >= self.bits
    }
}

// The first match determines the reported range, so the narrow blocks precede the wide ones.
const REFUSED_V4: &[Block<Ipv4Addr>] = &[
    v4([169, 254, 169, 254], 32, Range::Metadata), // most clouds
    v4([100, 100, 100, 200], 32, Range::Metadata), // Alibaba
    v4([192, 0, 0, 192], 32, Range::Metadata),     // Oracle
    // Azure responds to its virtual machines at this address, although it is publicly assigned.
    v4([168, 63, 129, 16], 32, Range::Metadata),
    v4([0, 0, 0, 0], 32, Range::Unspecified),
    v4([255, 255, 255, 255], 32, Range::Broadcast),
    v4([0, 0, 0, 0], 8, Range::ThisNetwork),
    v4([10, 0, 0, 0], 8, Range::Private),
    v4([100, 64, 0, 0], 10, Range::Shared),
    v4([127, 0, 0, 0], 8, Range::Loopback),
    v4([169, 254, 0, 0], 16, Range::LinkLocal),
    v4([172, 16, 0, 0], 12, Range::Private),
    v4([192, 0, 0, 0], 24, Range::Protocol),
    v4([192, 0, 2, 0], 24, Range::Documentation),
    v4([192, 88, 99, 0], 24, Range::Protocol), // the retired 6to4 relays
    v4([192, 168, 0, 0], 16, Range::Private),
    v4([198, 18, 0, 0], 15, Range::Benchmark),
    v4([198, 51, 100, 0], 24, Range::Documentation),
    v4([203, 0, 113, 0], 24, Range::Documentation),
    v4([224, 0, 0, 0], 4, Range::Multicast),
    v4([240, 0, 0, 0], 4, Range::Reserved),
];

// Checked before embedded IPv4 addresses: these addresses contain none, although some have the bits of one.
const EXACT_V6: &[Block<Ipv6Addr>] = &[
    v6([0, 0, 0], [0, 0], 128, Range::Unspecified),
    v6([0, 0, 0], [0, 1], 128, Range::Loopback),
    v6([0xfd00, 0x0ec2, 0], [0, 0x0254], 128, Range::Metadata), // AWS
    v6([0xfd20, 0x00ce, 0], [0, 0x0254], 128, Range::Metadata), // Google
    v6([0xfd00, 0x0042, 0], [0, 0x0042], 128, Range::Metadata), // Scaleway
    v6([0xfe80, 0, 0], [0xa9fe, 0xa9fe], 128, Range::Metadata), // OpenStack
];

const REFUSED_V6: &[Block<Ipv6Addr>] = &[
    v6([0xfc00, 0, 0], [0, 0], 7, Range::UniqueLocal),
    v6([0xfe80, 0, 0], [0, 0], 10, Range::LinkLocal),
    v6([0xfec0, 0, 0], [0, 0], 10, Range::SiteLocal),
    v6([0xff00, 0, 0], [0, 0], 8, Range::Multicast),
    v6([0x2001, 0x0002, 0], [0, 0], 48, Range::Benchmark),
    v6([0x2001, 0x0db8, 0], [0, 0], 32, Range::Documentation),
    v6([0x3fff, 0, 0], [0, 0], 20, Range::Documentation),
    v6([0x2001, 0, 0], [0, 0], 23, Range::Protocol), // Teredo, ORCHID, AMT and their like
];

/// Returns `true` for the allocated addresses, 2000::/3.
fn is_global_unicast(ip: Ipv6Addr) -> bool {
    ip.segments()[0] >> 13 == 1
}

/// Checks that an address is public.
///
/// # Errors
///
/// [`Refusal::NotPublic`] with the range that contains the address.
pub fn check_address(ip: IpAddr) -> Result<(), Refusal> {
    let verdict = match ip {
        IpAddr::V4(v4) => check_v4(v4).map_err(|range| (None, range)),
        IpAddr::V6(v6) => check_v6(v6),
    };
    verdict.map_err(|(inner, range)| Refusal::NotPublic { ip, inner, range })
}

/// Checks that a name may receive deliveries, by the addresses that it resolves to now.
///
/// Every address must be public, because the client may connect to any of them.
///
/// # Errors
///
/// [`Refusal::Unresolved`] if there is no address, [`Refusal::NotPublic`] for the first that is not public.
pub fn check_resolved(addresses: &[IpAddr]) -> Result<(), Refusal> {
    if addresses.is_empty() {
        return Err(Refusal::Unresolved);
    }
    addresses.iter().try_for_each(|ip| check_address(*ip))
}

fn check_v4(ip: Ipv4Addr) -> Result<(), Range> {
    REFUSED_V4.iter().find(|block| block.contains(ip)).map_or(Ok(()), |block| Err(block.range))
}

fn check_v6(ip: Ipv6Addr) -> Result<(), (Option<Ipv4Addr>, Range)> {
    let refuse = |blocks: &[Block<Ipv6Addr>]| {
        blocks.iter().find(|block| block.contains(ip)).map_or(Ok(()), |block| Err((None, block.range)))
    };
    refuse(EXACT_V6)?;

    let embedded = EmbeddedIpv4::find(ip);
    for inner in embedded.addresses.into_iter().flatten() {
        check_v4(inner).map_err(|range| (Some(inner), range))?;
    }
    if embedded.is_only_ipv4 {
        return Ok(());
    }

    refuse(REFUSED_V6)?;
    if is_global_unicast(ip) { Ok(()) } else { Err((None, Range::Reserved)) }
}

/// The IPv4 addresses to which packets to an IPv6 address may be forwarded.
struct EmbeddedIpv4 {
    addresses: [Option<Ipv4Addr>; 3],
    // `true` if the address leads to the IPv4 internet only, so that the IPv6 ranges do not apply. Mapped and NAT64
    // addresses lie outside 2000::/3 and yet lead to the IPv4 internet. A network without IPv4 sees every IPv4-only
    // server as a NAT64 address.
    is_only_ipv4: bool,
}

impl EmbeddedIpv4 {
    fn find(ip: Ipv6Addr) -> EmbeddedIpv4 {
        let segments = ip.segments();
        let ipv4 = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
        let mut embedded = EmbeddedIpv4 { addresses: [None; 3], is_only_ipv4: false };
        match segments {
            // Mapped, RFC 4291, and NAT64, RFC 6052.
            [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                embedded.addresses[0] = ipv4(high, low);
                embedded.is_only_ipv4 = true;
            }
            // Compatible, RFC 4291; translated, RFC 2765; a network's own NAT64, RFC 8215.
            [0, 0, 0, 0, 0, 0, high, low]
            | [0, 0, 0, 0, 0xffff, 0, high, low]
            | [0x64, 0xff9b, 1, _, _, _, high, low] => embedded.addresses[0] = ipv4(high, low),
            // 6to4, RFC 3056.
            [0x2002, high, low, ..] => embedded.addresses[0] = ipv4(high, low),
            // Teredo, RFC 4380: the server, and the client with every bit inverted.
            [0x2001, 0, high, low, _, _, client_high, client_low] => {
                embedded.addresses[0] = ipv4(high, low);
                embedded.addresses[1] = ipv4(!client_high, !client_low);
            }
            _ => {}
        }
        // ISATAP, RFC 5214: in the lower half, under any prefix.
        if let [_, _, _, _, 0 | 0x0200, 0x5efe, high, low] = segments {
            embedded.addresses[2] = ipv4(high, low);
        }
        embedded
    }
}
