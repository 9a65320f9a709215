import { type Mistake, mine, spf, txt } from "./mistake"

/** One of them anywhere, and receivers use nothing of the record (RFC 7208 4.6). */
const SPOILED: [did: string, terms: string, told: string][] = [
  [
    "gave a network of IPv4 33 bits",
    `${mine} ip4:10.0.0.0/33 ~all`,
    '"10.0.0.0/33" is not an IPv4',
  ],
  ["mistyped an IPv4 address", `${mine} ip4:999.1.1.1 ~all`, '"999.1.1.1" is not an IPv4'],
  ["cut an IPv6 address off", `${mine} ip6:1:2 ~all`, '"1:2" is not an IPv6'],
  ["gave a network of IPv6 129 bits", `${mine} ip6:::/129 ~all`, '"::/129" is not an IPv6'],
  ["gave a host's network 33 bits", `${mine} mx/33 ~all`, "wrong network length"],
  ["gave its IPv6 network 129", `${mine} a:h.test/24//129 ~all`, "wrong network length"],
  ["wrote an address behind a:", `${mine} a:192.0.2.1 ~all`, "needs ip4: or ip6: before it"],
  ["named a host without its domain", `${mine} a:mail ~all`, "such as mail.example.com"],
  ["put commas between", `a:h.test, ${mine} ~all`, '"h.test," is not a host name'],
  [
    "redirected twice",
    `${mine} redirect=a.test redirect=b.test`,
    '"redirect=" is allowed only once in the record',
  ],
  [
    "explained twice",
    `exp=a.test ${mine} ~all exp=a.test`,
    '"exp=" is allowed only once in the record',
  ],
  ["left a bad term behind the end", `${mine} ~all ip4:1.2.3`, '"1.2.3" is not an IPv4'],
]

export const spfMistakes: Mistake[] = [
  {
    did: "kept the SPF record of another service beside ours",
    record: "spf",
    records: () => spf(`v=spf1 ${mine} ~all`, "v=spf1 include:_spf.other.test ~all"),
    mistake: "double_spf",
    told: "Join them into one",
  },
  {
    did: "included more than ten lookups before ours",
    record: "spf",
    records: (_, zone) => ({
      ...spf(`v=spf1 include:many.${zone} ${mine} ~all`),
      more: [
        txt(
          "many",
          `v=spf1 ${Array.from({ length: 10 }, (_, at) => `a:h${at}.test`).join(" ")} -all`,
        ),
      ],
    }),
    mistake: "spf_too_many_lookups",
    told: "SPF needs 12 DNS lookups",
  },
  {
    did: "let everybody send",
    record: "spf",
    records: () => spf(`v=spf1 ${mine} +all`),
    mistake: "spf_plus_all",
    told: "+all lets everybody send",
    status: "verified",
  },
  {
    did: "included himself",
    record: "spf",
    records: (_, zone) => ({
      ...spf(`v=spf1 include:a.${zone} ~all`),
      more: [txt("a", `v=spf1 include:b.${zone} ~all`), txt("b", `v=spf1 include:a.${zone} ~all`)],
    }),
    mistake: "spf_loop",
    told: "in a circle",
  },
  {
    did: "included a name that has no SPF",
    record: "spf",
    records: (_, zone) => spf(`v=spf1 include:gone.${zone} ${mine} ~all`),
    mistake: "spf_include_empty",
    told: "leads to no SPF record",
  },
  {
    did: "included a name that has no SPF, behind us",
    record: "spf",
    records: (_, zone) => spf(`v=spf1 ${mine} include:gone.${zone} ~all`),
    mistake: "spf_include_empty",
    told: "leads to no SPF record",
    status: "verified",
  },
  {
    did: "included a record that names us, and forbids it",
    record: "spf",
    records: (_, zone) => ({
      ...spf(`v=spf1 -include:us.${zone} ~all`),
      more: [txt("us", `v=spf1 ${mine} -all`)],
    }),
    mistake: "spf_mechanism_missing",
    told: `does not name ${mine}`,
  },
  {
    did: "wrote include= for include:",
    record: "spf",
    records: () => spf(`v=spf1 include=_spf.other.test ${mine} ~all`),
    mistake: "spf_syntax",
    told: '"include" must be followed by a colon',
  },
  ...SPOILED.map(
    ([did, terms, told]): Mistake => ({
      did,
      record: "spf",
      records: () => spf(`v=spf1 ${terms}`),
      mistake: "spf_syntax",
      told,
    }),
  ),
  {
    did: "included a record before us that cannot be read",
    record: "spf",
    records: (_, zone) => ({
      ...spf(`v=spf1 include:old.${zone} ${mine} ~all`),
      more: [txt("old", "v=spf1 ip4:10.0.0.0/33 -all")],
    }),
    mistake: "spf_syntax",
    told: "SPF of old.case",
  },
  {
    did: "included a record behind us that cannot be read",
    record: "spf",
    records: (_, zone) => ({
      ...spf(`v=spf1 ${mine} include:old.${zone} ~all`),
      more: [txt("old", "v=spf1 ip4:10.0.0.0/33 -all")],
    }),
    mistake: "spf_syntax",
    told: "SPF of old.case",
    status: "verified",
  },
  {
    did: "forgot the space after the version",
    record: "spf",
    records: () => spf(`v=spf1${mine} ~all`),
    mistake: "spf_prefix",
    told: 'begin with "v=spf1" and a space',
  },
  {
    did: "did not name us",
    record: "spf",
    records: () => spf("v=spf1 ip4:192.0.2.1 -all"),
    mistake: "spf_mechanism_missing",
    told: `does not name ${mine}`,
  },
  {
    did: "named us behind the end",
    record: "spf",
    records: () => spf(`v=spf1 -all ${mine}`),
    mistake: "spf_after_all",
    told: "after -all",
  },
  {
    did: "put SPF at the domain itself",
    record: "spf",
    records: () => ({ spf: [txt("@", `v=spf1 ${mine} ~all`)] }),
    mistake: "wrong_name",
    told: "Add another one at bounce.",
  },
]
