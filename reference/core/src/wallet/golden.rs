//! Addresses that other software derived, so that no mistake here can agree with itself.
//!
//! From bip_utils 2.12.3 (Python), which shares no code with this crate.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::asset::Asset;

/// A form, a mode, an extended public key and its addresses.
type Golden = (AddressForm, Mode, &'static str, [&'static str; 3]);

/// The first account, and its addresses 0 to 2, of the BIP-39 mnemonic "abandon" (eleven times) "about":
/// BIP-84 for Bitcoin and Litecoin, BIP-44 for the others. Ethereum's and Tron's test keys are the live
/// ones under the version of a `tpub`. The first row contains the vectors of BIP-84.
const MNEMONIC: [Golden; 12] = [
    (
        AddressForm::Bitcoin,
        Mode::Live,
        "zpub6rFR7y4Q2AijBEqTUquhVz398htDFrtymD9xYYfG1m4wAcvPhXNfE3EfH1r1ADqtfSdVCToUG868RvUUkgDKf31mGDtKsAYz2oz2AGutZYs",
        [
            "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu",
            "bc1qnjg0jd8228aq7egyzacy8cys3knf9xvrerkf9g",
            "bc1qp59yckz4ae5c4efgw2s5wfyvrz0ala7rgvuz8z",
        ],
    ),
    (
        AddressForm::Bitcoin,
        Mode::Test,
        "vpub5Y6cjg78GGuNLsaPhmYsiw4gYX3HoQiRBiSwDaBXKUafCt9bNwWQiitDk5VZ5BVxYnQdwoTyXSs2JHRPAgjAvtbBrf8ZhDYe2jWAqvZVnsc",
        [
            "tb1q6rz28mcfaxtmd6v789l9rrlrusdprr9pqcpvkl",
            "tb1qd7spv5q28348xl4myc8zmh983w5jx32cjhkn97",
            "tb1qxdyjf6h5d6qxap4n2dap97q4j5ps6ua8sll0ct",
        ],
    ),
    (
        AddressForm::Litecoin,
        Mode::Live,
        "zpub6rPo5mF47z5coVm5rvWv7fv181awb7Vckn5Cf3xQXBVKu18kuBHDhNi1Jrb4br6vVD3ZbrnXemEsWJoR18mZwkUdzwD8TQnHDUCGxqZ6swA",
        [
            "ltc1qjmxnz78nmc8nq77wuxh25n2es7rzm5c2rkk4wh",
            "ltc1qwlezpr3890hcp6vva9twqh27mr6edadreqvhnn",
            "ltc1qc6aucuznvhh9uvux246x24vf9y9ncfk729m92s",
        ],
    ),
    (
        AddressForm::Litecoin,
        Mode::Test,
        "ttub4d81p5cxvtYKpLR1rpAWdWgdTEdcpRUTEjhEAwi4jFysnyYYYU6w3pRyV6gPAKZbaHoVQdDSdDJrEngpFdPnoTQM8PBSDhD552ZSfeKDEKA",
        [
            "tltc1q6rz28mcfaxtmd6v789l9rrlrusdprr9pesrjxk",
            "tltc1qd7spv5q28348xl4myc8zmh983w5jx32ctl5d4h",
            "tltc1qxdyjf6h5d6qxap4n2dap97q4j5ps6ua8fha3gz",
        ],
    ),
    (
        AddressForm::Dogecoin,
        Mode::Live,
        "dgub8rUhDtD3YFGZTUphBfpBbzvFxSMKQXYLzg87Me2ta78r2SdVLmypBUkkxrrn9RTnchsyiJSkHZyLWxD13ibBiXtuFWktBoDaGaZjQUBLNLs",
        [
            "DBus3bamQjgJULBJtYXpEzDWQRwF5iwxgC",
            "DAcDAtJRztxBHyA6D6h8du1HguyTR43Mas",
            "D8K3KyDQ9FXeC3ADCuWW7cnWC7RvjHjV8H",
        ],
    ),
    (
        AddressForm::Dogecoin,
        Mode::Test,
        "tgub5QziLPy2KFnZgdWALMfCBZcPpFQxtmu3sMDKvDdt1L7WAiAWXpAqf1S9FzNEEa7ipDM6kEy4o9mrVGshjxMKMoq383HELMHguMNGgRryJwt",
        [
            "nZVmfmUtKPmskB9Ds4P9GUJy9eYFqPKHqH",
            "noVoUoC3q7wgmb25McqSdLCHhUAhSREkT9",
            "nb8xvuyL7K3DWS8QgGH2rxcfKyvMQ1wiYe",
        ],
    ),
    (
        AddressForm::BitcoinCash,
        Mode::Live,
        "xpub6ByHsPNSQXTWZ7PLESMY2FufyYWtLXagSUpMQq7Un96SiThZH2iJB1X7pwviH1WtKVeDP6K8d6xxFzzoaFzF3s8BKCZx8oEDdDkNnp4owAZ",
        [
            "bitcoincash:qqyx49mu0kkn9ftfj6hje6g2wfer34yfnq5tahq3q6",
            "bitcoincash:qp8sfdhgjlq68hlzka9lcsxtcnvuvnd0xqxugfzzc5",
            "bitcoincash:qqkuy34ntrye9a2h4xpdstcu4aq5wfrwscjtaphenr",
        ],
    ),
    (
        AddressForm::BitcoinCash,
        Mode::Test,
        "tpubDC5FSnBiZDMmhiuCmWAYsLwgLYrrT9rAqvTySfuCCrgsWz8wxMXUS9Tb9iVMvcRbvFcAHGkMD5Kx8koh4GquNGNTfohfk7pgjhaPCdXpoba",
        [
            "bchtest:qqaz6s295ncfs53m86qj0uw6sl8u2kuw0ymst35fx4",
            "bchtest:qrfuppcw3cf6nmpjpufgpzy3y74ptfxq5yxdy864k4",
            "bchtest:qpxzu2ljsp5sgk5wkcnusw0lyvrtwwa6xq7ysu5t02",
        ],
    ),
    (
        AddressForm::Evm,
        Mode::Live,
        "xpub6DCoCpSuQZB2jawqnGMEPS63ePKWkwWPH4TU45Q7LPXWuNd8TMtVxRrgjtEshuqpK3mdhaWHPFsBngh5GFZaM6si3yZdUsT8ddYM3PwnATt",
        [
            "0x9858EfFD232B4033E47d90003D41EC34EcaEda94",
            "0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0",
            "0xb6716976A3ebe8D39aCEB04372f22Ff8e6802D7A",
        ],
    ),
    (
        AddressForm::Evm,
        Mode::Test,
        "tpubDDaRj4Gb7q8V1P8hETLKbMRQyWRAkL1Sph3mQdTFgJHQefHqXajb6sXWyvKfEQo46xJYKA29vMhEUsBgf7QpEYL17aJwAQ7NDb8koR13eMV",
        [
            "0x9858EfFD232B4033E47d90003D41EC34EcaEda94",
            "0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0",
            "0xb6716976A3ebe8D39aCEB04372f22Ff8e6802D7A",
        ],
    ),
    (
        AddressForm::Tron,
        Mode::Live,
        "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd",
        [
            "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH",
            "TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK",
            "TYJPRrdB5APNeRs4R7fYZSwW3TcrTKw2gx",
        ],
    ),
    (
        AddressForm::Tron,
        Mode::Test,
        "tpubDDNo6qBxvBn6z8XwXkQEgNDj2R7aCDUYcABrzXkVu6UCGT17xzdExVhKhShYKnT1vQuk3h9iKQdoFTeu1983Tr94yixMmL2huugdKQWhcs4",
        [
            "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH",
            "TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK",
            "TYJPRrdB5APNeRs4R7fYZSwW3TcrTKw2gx",
        ],
    ),
];

/// The keys that seed 7 makes for the account "acme", with the addresses 0, 1 and 2³¹ - 1 that bip_utils reads
/// from the printed key.
const SEEDED: [Golden; 12] = [
    (
        AddressForm::Bitcoin,
        Mode::Live,
        "zpub6r1jpd2kZaur2TDjQnDsbbH3gf9FqWj3zBqwn5mxqBEj1s9JoSK897rhyJMz1CMfJvm1sfwKRnsudXbkLqbGJhJV8fYqsSFDJQ2iJeVsso1",
        [
            "bc1q8nr089kkzrwndjeqkkfkegjynufh27y9yegm6a",
            "bc1q7kljzs30amg0p2z3gh2c5mpz7g9jj7mmr282kf",
            "bc1qqajztlqas8yqkhk5x7g4hf3jy8cqhlnr2fyc9r",
        ],
    ),
    (
        AddressForm::Bitcoin,
        Mode::Test,
        "vpub5Y9DrcSSzCGhsnmocowg7VirmfGneENPwXgVA6qyNppdfg69Gj9R5ujjSuSUfmmMQYrVuhXxyZnDg4kFeKUfv4JQBs1ztB5nNYCBpotZP3S",
        [
            "tb1quz7ucyjkqdckq9pgg5hnemga0t7pty0dazy63c",
            "tb1qjm8d7m9m7y0mtp62htmet2pyuggc22nchyvlp2",
            "tb1q0qksusgu05pujxu6ccgtj94e827mjm3m7f62am",
        ],
    ),
    (
        AddressForm::Litecoin,
        Mode::Live,
        "zpub6qrVxQGyMAXViLMW7ErQRShYkDUeVd9isten88Rxmvq98zdxBENUKjnuaKS8BLUj9jsrsxAnnoYEZD9qAxj3zGw5d6FqAdRgB4fuyKKjxYi",
        [
            "ltc1qa3qq7aj4ckc22qjgjpwx9qujzjydtvjwcghhmz",
            "ltc1qvvcn2wuf2vv00f6llqf6nf3tvf4uc8hxmdrrep",
            "ltc1q5n27x5hnjpc37zfhy7u4h9jq9z5zl38md3an9v",
        ],
    ),
    (
        AddressForm::Litecoin,
        Mode::Test,
        "ttub4eJrW68aQJqyqHpyj7MNnrcTnyxLmxLbZB1xHdjdnBmp7oXqEZ8sQaWpqQzxGRLknJMK1h1vWBG6ebWh2osUimcyC23j5JquVVdeMd1ZWGH",
        [
            "tltc1qa2admlzs39esjgheuyvj5lwxuq7sn8nzkmvtlr",
            "tltc1qvcksdyz9l5wrpgy9wsjxppckgeltwmsj2v06r4",
            "tltc1qjtqfzff45n5n2p6zpz5228qa2jl8fh8ndmhpgn",
        ],
    ),
    (
        AddressForm::Dogecoin,
        Mode::Live,
        "dgub8rrVGahC3piZXkqKBeZugxLkonCEHSqxAbsKKdSPXVJ82gqFfw8V5MR11ekPvx7eJ6HnhCFDwVNqq6Zu6bh8aa6JcCG6g6rJYnYtRQHu5rm",
        [
            "DNobJCAAxqK3vX4ZgFHRBwCyoZY9e19g44",
            "D8ySXBTLcaAHUhKFcxHDGjPQCGRSgZC7iZ",
            "DB2woN3gme3QYSYhY4WP9grVYqQHYeuw8H",
        ],
    ),
    (
        AddressForm::Dogecoin,
        Mode::Test,
        "tgub5RZV81ERibti8ESUC8fZzoaSTuNbvJXWkMtULdbMY9S7NavDdSktCc9SGmS4BuMekMKntNEVHoMHYbwzEBcjRUnUki6nX7MvHTtTjnFNMGf",
        [
            "nW98swhRQWRp9APvdZBjY1kptBEM751dJc",
            "nhkWeXYoqHS73GkKFBnWHL1TLPRpkvryRZ",
            "nfxSok2Kjanm9WeaVWM78PGox2VUKRis6B",
        ],
    ),
    (
        AddressForm::BitcoinCash,
        Mode::Live,
        "xpub6DTxX4oMwimpvpqTGetSgkrwYcQRYL6yGDigBm3EoPonm82nq9TJA1vhaVogMWa7ynVJ3Mp1y6o5Rhm3eoTkH26TEu98VmT5MnAcdCTW7yJ",
        [
            "bitcoincash:qptdlh8mzdksrqtwearu2agdn5yedst4t53zgf8my7",
            "bitcoincash:qqxvln9qa8nvalkg6d05cp69vajfegzgqgee3weq2y",
            "bitcoincash:qz59vutugnj7szq4jc9vv7mmfpas7g70jcfue64p9y",
        ],
    ),
    (
        AddressForm::BitcoinCash,
        Mode::Test,
        "tpubDDf4S871ifMKJcmC9vGN447wrBhuCh6mjqqFibuCrsNrM3yFYU75JQpb2QPM4ZVTBnaMieBsnsxbdaiSLfY6TLbC81CXEuPziRSz4JX2uGh",
        [
            "bchtest:qzknmap5r6wylxtay00eyud94375j0y0pgk5x6lqj2",
            "bchtest:qpkvplynr93an5f4fyel329flamy320mwsmunv3c9q",
            "bchtest:qqa0fr5yeu4er0tnwm6lcwtg78dnjulktcf3849c7h",
        ],
    ),
    (
        AddressForm::Evm,
        Mode::Live,
        "xpub6Cc6kakSFCkP7kaPE8zxwgME89SkzcFdvSnF7EWcZ9m5v426fprNgFpbcZ1ss1R8pn8upboWyFg7KmPdXTtfSvKMZk5tHbgFUuxPe5qKJjs",
        [
            "0xe0147fc6fEfa734b92913c681ac788B18954565D",
            "0x5669822691572fc89E7f84E22f0918a012018CE4",
            "0x178Dbcc310eEdecd6a66AD72b7FBaB2d2f273404",
        ],
    ),
    (
        AddressForm::Evm,
        Mode::Test,
        "tpubDCMW8gbcPX2RcxDRF1E5qdBLUYciTHdkqdTRQZYtirhii2yCNoz99kV8cvNRiiTcxeNtNvSSAxwmC1j2KNePZvspeToV77P8iV5ERuh3DBN",
        [
            "0x1955bd3F6efC62B2715D3814E3147c0497e71465",
            "0x02d575d523AB0EBe3cE9F1fF4c8a22441D4C2E20",
            "0xB3777230ef50B834e3A3567055a195907D378037",
        ],
    ),
    (
        AddressForm::Tron,
        Mode::Live,
        "xpub6CPd2A3d8jcXXBaVBZ1DXDoHjaiGeTpah6TANZ4kefT2H7jdsAxoCuzyVo3EXMyhJ6p4gUcbrXCVbfFB3YozsRZDoFYumdahkXfDNqQpvDB",
        [
            "TRw8AcghJ3BETRLZCAZso7xHJ8MdGRLS7V",
            "TQ8ruXL2zqSwtrRKvKQVFhZaSPBjnNtdXb",
            "TFwdDgJiWoLu8VYskxSgfARwfLhnkfrHUG",
        ],
    ),
    (
        AddressForm::Tron,
        Mode::Test,
        "tpubDCUSj7GY33KdF4qZoXBDXFQn7qc9gG8ViPyEu8YLotXUDwMn4UDBcJWaZVb3d9Ku8odWkqAeR9kyLosz4TyHCZ2AWPHdUaf89zQjJfo3EmA",
        [
            "TLMwsnV5RgqwVqTmfMNpEALcx5AScfVDcf",
            "TTcmug5sYMQJ7ge1psK43RAc9eGH4QzHYS",
            "TKLq32thmN42HtqtVTzNjKPJgrKPMUrDF2",
        ],
    ),
];

/// The owner's statement about a key, and the resulting script.
type SaidAndMeant = (Option<Script>, Script);

/// The same mnemonic in accounts of the other scripts, BIP-49 and BIP-44: what must be said of the key, what it then
/// stands for, the key, and its addresses.
const SCRIPTS: [(AddressForm, Mode, SaidAndMeant, &str, [&str; 3]); 8] = [
    (
        AddressForm::Bitcoin,
        Mode::Live,
        (None, Script::P2shP2wpkh),
        "ypub6Ww3ibxVfGzLrAH1PNcjyAWenMTbbAosGNB6VvmSEgytSER9azLDWCxoJwW7Ke7icmizBMXrzBx9979FfaHxHcrArf3zbeJJJUZPf663zsP",
        [
            "37VucYSaXLCAsxYyAPfbSi9eh4iEcbShgf",
            "3LtMnn87fqUeHBUG414p9CWwnoV6E2pNKS",
            "3B4cvWGR8X6Xs8nvTxVUoMJV77E4f7oaia",
        ],
    ),
    (
        AddressForm::Bitcoin,
        Mode::Test,
        (None, Script::P2shP2wpkh),
        "upub5EFU65HtV5TeiSHmZZm7FUffBGy8UKeqp7vw43jYbvZPpoVsgU93oac7Wk3u6moKegAEWtGNF8DehrnHtv21XXEMYRUocHqguyjknFHYfgY",
        [
            "2Mww8dCYPUpKHofjgcXcBCEGmniw9CoaiD2",
            "2N55m54k8vr95ggehfUcNkdbUuQvaqG2GxK",
            "2N9LKph9TKtv1WLDfaUJp4D8EKwsyASYnGX",
        ],
    ),
    (
        AddressForm::Litecoin,
        Mode::Live,
        (None, Script::P2shP2wpkh),
        "ypub6WZ2nNciqS7sCCFCH64AswfvBu4pLXTdDQcvTkrSFyEbashNb6vEJwXTCB7axKdR4TSbNYTqnU7S6sYPs9afBYqTytiTdjzmcDVRuYcrtso",
        [
            "M7wtsL7wSHDBJVMWWhtQfTMSYYkyooAAXM",
            "M92zAbFXY2J7NJXdFpJTe3a5PrsyZQhKZK",
            "MJfELhwt9S6Sr9hadHGsnTELZzFUVjMrFc",
        ],
    ),
    (
        AddressForm::Litecoin,
        Mode::Test,
        (Some(Script::P2shP2wpkh), Script::P2shP2wpkh),
        "ttub4e78U9UeJNe63CKWYyANN9P7FxhuRxQNnFhSnp9yPiLVTzi46eu8kjp1GyCKBpWt5pftjBcPoZ22XefHhZ6eCKj7gVE6igKcDzrfzcGAGJ8",
        [
            "QRHtkDQdVvNNwrVjEdeCGviCw7Ny3SNNiA",
            "QYSXC5cNwxCApsQkHaePqL2v3oNQftuzPX",
            "Qch5wi1hLzy6eWyiCaLq8uZfULKnxc7HnY",
        ],
    ),
    (
        AddressForm::Bitcoin,
        Mode::Live,
        (Some(Script::P2pkh), Script::P2pkh),
        "xpub6BosfCnifzxcFwrSzQiqu2DBVTshkCXacvNsWGYJVVhhawA7d4R5WSWGFNbi8Aw6ZRc1brxMyWMzG3DSSSSoekkudhUd9yLb6qx39T9nMdj",
        [
            "1LqBGSKuX5yYUonjxT5qGfpUsXKYYWeabA",
            "1Ak8PffB2meyfYnbXZR9EGfLfFZVpzJvQP",
            "1MNF5RSaabFwcbtJirJwKnDytsXXEsVsNb",
        ],
    ),
    (
        AddressForm::Bitcoin,
        Mode::Test,
        (Some(Script::P2pkh), Script::P2pkh),
        "tpubDC5FSnBiZDMmhiuCmWAYsLwgLYrrT9rAqvTySfuCCrgsWz8wxMXUS9Tb9iVMvcRbvFcAHGkMD5Kx8koh4GquNGNTfohfk7pgjhaPCdXpoba",
        [
            "mkpZhYtJu2r87Js3pDiWJDmPte2NRZ8bJV",
            "mzpbWabUQm1w8ijuJnAof5eiSTep27deVH",
            "mnTkxhNkgx7TsZrEdRcPti564yQTzynGJp",
        ],
    ),
    (
        AddressForm::Litecoin,
        Mode::Live,
        (Some(Script::P2pkh), Script::P2pkh),
        "xpub6BnJJjq783EdyBeQPA9P9ao9DTS3fUqyKG5NJDcrCiwwxEkesGoHN94LZRGE7rz1jgcvmmp8j55BNx573KFq1WBwKiemzkdfNKffKx6Mvku",
        [
            "LUWPbpM43E2p7ZSh8cyTBEkvpHmr3cB8Ez",
            "Ldatw8ZjgMGNUo5HMN6RgCrjmh7q494Si3",
            "LX4YojYdeBk3TtUcryCcgAqYxjicKfK7AD",
        ],
    ),
    (
        AddressForm::Litecoin,
        Mode::Test,
        (Some(Script::P2pkh), Script::P2pkh),
        "ttub4d4VPcY3DBxKCoAjoeDr9q3FaD4dbY89X65XUhapWiaSFbEjYLwnNg2EcHgEVSEALaEVdZnprREdcWMPJxqFkvN89FcPRFBueauxVCvFpUt",
        [
            "mkpZhYtJu2r87Js3pDiWJDmPte2NRZ8bJV",
            "mzpbWabUQm1w8ijuJnAof5eiSTep27deVH",
            "mnTkxhNkgx7TsZrEdRcPti564yQTzynGJp",
        ],
    ),
];

#[track_caller]
fn check(wallet: &Wallet, numbers: [u32; 3], expected: [&str; 3]) {
    let addresses = numbers.map(|n| wallet.address(n).unwrap());
    assert_eq!(addresses, expected);
}

/// Native segwit where the form has several kinds of address.
#[track_caller]
fn read_segwit(key: &str, form: AddressForm, mode: Mode) -> Wallet {
    let script = Script::is_for(form).then_some(Script::P2wpkh);
    Wallet::read(key, script, form, mode).unwrap()
}

#[test]
fn accounts_have_the_addresses_that_their_owners_wallet_shows() {
    for (form, mode, key, addresses) in MNEMONIC {
        let wallet = read_segwit(key, form, mode);
        check(&wallet, [0, 1, 2], addresses);
    }
}

#[test]
fn accounts_of_every_script_have_the_addresses_that_their_owners_wallet_shows() {
    for (form, mode, (said, script), key, addresses) in SCRIPTS {
        let wallet = Wallet::read(key, said, form, mode).unwrap();
        assert_eq!(wallet.script(), Some(script));
        check(&wallet, [0, 1, 2], addresses);
        // What the prefix does not say is not guessed.
        let unsaid = Wallet::read(key, None, form, mode);
        assert_eq!(unsaid.is_ok(), said.is_none(), "{key}");
    }
}

#[test]
fn seeded_wallets_never_change_and_other_software_reads_their_keys() {
    for (form, mode, key, addresses) in SEEDED {
        let wallet = Wallet::seeded(Seed(7), &format!("acme/{mode}"), form, mode);
        assert_eq!(wallet.extended_key().unwrap().to_string(), key);
        assert_eq!(Wallet::read(key, wallet.script(), form, mode).as_ref(), Ok(&wallet));
        check(&wallet, [0, 1, (1 << 31) - 1], addresses);
    }
}

#[test]
fn seeded_lists_never_change() {
    check(
        &Wallet::seeded(Seed(7), "acme/live", AddressForm::Solana, Mode::Live),
        [0, 1, (1 << 31) - 1],
        [
            "Be7UmkXE9URi9E514UMhEqF2PqFbu1BThaq6tqWMygmt",
            "7wRchMireh3QEt1GGduLtCEvK8PnJHyNu8faf7Eq1ewq",
            "A7T1GroHMmT8hJUfc2as4RCRYn5K5s7TXTkoKSrHTcFb",
        ],
    );
    check(
        &Wallet::seeded(Seed(7), "acme/test", AddressForm::Solana, Mode::Test),
        [0, 1, (1 << 31) - 1],
        [
            "9FqpJRBeQQvXK95dBhycVGMAZzzMnjgWKdL5hm3asx7x",
            "CTWa6BwVW243pih6KVAKMtfXEkaQT8Ztbaz8NosS3sM9",
            "CDZjqh5LLoc42bd2g5q3ZjDR9RuwzGCBYbX46MDo1cKF",
        ],
    );
    check(
        &Wallet::seeded(Seed(7), "acme/live", AddressForm::Monero, Mode::Live),
        [0, 1, (1 << 31) - 1],
        [
            "83r9sj7KutKawQJwiYKmVzUfLiQxtByZjbUky6AJS9hEfQD7vF62McEgS6u2EsAQ5AgaZjkzp6g9eeRagM2gsz4eLwGQgec",
            "86g6FG7Jsmhipumy3e5pKETFGGYrPJmfCUKSHeVF7QTZdoKZuFLPZM5LfN3c9gSr7cKDeYMgBHW2CLGXAmbF4zc42CsmugE",
            "8ATbgL33KWzXrDtxobfW7Ra671Q3TQwvXNDzhu3nuksi28XH6AGuWG18rg5HpVGmuD8MAj89Bsu4aNzfgsVhkQFySdkX3hi",
        ],
    );
    check(
        &Wallet::seeded(Seed(7), "acme/test", AddressForm::Monero, Mode::Test),
        [0, 1, (1 << 31) - 1],
        [
            "78LswXz5a1STov76yzj5B4AUoe2aBUoTTjhtxYu7Gtna1Jek9duHPzq36srxxebL4VUvHKT9ARz1VDvZeZzRivAm9mpkEBu",
            "79HKRZ8RnssTVJ85pEMvnk8guwe5Y4RPiNKXhBz33R2LeHskqCKmi8HChCw5TmMk74XGNvAjxeQjSQopnk5oZ1g42DiVSb1",
            "75EGijCxYoTJLSrLwpAcQW1TgE7eFEwJ3HteMcgbra3DFratQe4EM2cJioKYWtE69pRqo5PfihGuNSREAwW97oQwFJNueHn",
        ],
    );
}

#[test]
fn a_key_has_an_address_for_every_number_below_the_hardened_ones() {
    let (form, mode, key, _) = MNEMONIC[0];
    let wallet = Wallet::read(key, None, form, mode).unwrap();
    assert!(wallet.address((1 << 31) - 1).is_some());
    assert_eq!(wallet.address(1 << 31), None);
    let key = wallet.extended_key().unwrap();
    assert_eq!(key.address(form, None, mode, 1 << 31), Err(WalletError::NoSuchAddress(1 << 31)));
    assert_eq!(
        key.address(AddressForm::Monero, None, mode, 0),
        Err(WalletError::NeedsList(AddressForm::Monero))
    );
}

#[test]
fn the_spelling_of_a_key_changes_neither_its_addresses_nor_its_identity() {
    let (form, mode, zpub, addresses) = MNEMONIC[0];
    let xpub = "xpub6CatWdiZiodmUeTDp8LT5or8nmbKNcuyvz7WyksVFkKB4RHwCD3XyuvPEbvqAQY3rAPshWcMLoP2fMFMKHPJ4ZeZXYVUhLv1VMrjPC7PW6V";
    let [one, two] = [zpub, xpub].map(|key| read_segwit(key, form, mode));
    check(&two, [0, 1, 2], addresses);
    assert_eq!(one.identity(), two.identity());
    assert!(one.overlaps(&two));
}

#[test]
fn a_key_in_two_modes_or_coins_is_recognised() {
    let evm = MNEMONIC[8].2;
    let wallet = |form, mode| Wallet::read(evm, None, form, mode).unwrap();
    let live = wallet(AddressForm::Evm, Mode::Live);
    assert!(live.overlaps(&wallet(AddressForm::Evm, Mode::Test)));
    assert!(live.overlaps(&wallet(AddressForm::BitcoinCash, Mode::Live)));
    assert!(!live.overlaps(&Wallet::read(MNEMONIC[10].2, None, AddressForm::Tron, Mode::Live).unwrap()));
}

#[test]
fn the_name_of_a_wallet_never_changes_because_counters_hang_on_it() {
    let identity = |text, form| Wallet::read(text, None, form, Mode::Live).unwrap().identity().to_owned();
    assert_eq!(identity(MNEMONIC[0].2, AddressForm::Bitcoin), "key-e7b44782b0ca91cea145cb4ca9723583");
    assert_eq!(
        identity("HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk", AddressForm::Solana),
        "list-6994d85e62bf3ce8581315d6e399d583"
    );
    let drawn = Wallet::seeded(Seed(7), "acme/live", AddressForm::Solana, Mode::Live);
    assert_eq!(drawn.identity(), "drawn-f6836d6e72fd2a1402893d21102732ff");
}

/// The form of every coin, each once.
pub(super) fn forms() -> BTreeSet<AddressForm> {
    Asset::ALL.map(|asset| asset.facts().form).into()
}

#[test]
fn no_two_seeded_wallets_overlap() {
    let forms = forms();
    let mut identities = BTreeSet::new();
    for (seed, realm) in [(1, "acme"), (2, "acme"), (1, "shop")] {
        for (form, mode) in forms.iter().flat_map(|&form| Mode::ALL.map(|mode| (form, mode))) {
            assert!(identities.insert(Wallet::seeded(Seed(seed), realm, form, mode).identity().to_owned()));
        }
    }
    assert_eq!(identities.len(), 3 * forms.len() * Mode::ALL.len());
}

proptest! {
    #[test]
    fn a_key_reads_back_what_it_prints(seed: u64, n in 0..SEEDED.len()) {
        let (form, mode, ..) = SEEDED[n];
        let key = ExtendedKey::seeded(Seed(seed), "acme", form, mode).unwrap();
        prop_assert_eq!(ExtendedKey::parse(&key.to_string(), form, mode), Ok(key));
    }

    #[test]
    fn drawn_addresses_pass_as_addresses(seed: u64, n: u32) {
        for form in [AddressForm::Solana, AddressForm::Monero] {
            for mode in Mode::ALL {
                let address = Wallet::seeded(Seed(seed), "acme", form, mode).address(n).unwrap();
                prop_assert_eq!(list::validate(form, mode, &address), Ok(()));
            }
        }
    }
}
