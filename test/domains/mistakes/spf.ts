import { type Mistake, mine, spf, txt } from "./mistake"

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
    told: "turns in a circle",
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
    told: '"include" is followed by a colon',
  },
  {
    did: "forgot the space after the version",
    record: "spf",
    records: () => spf(`v=spf1${mine} ~all`),
    mistake: "spf_prefix",
    told: 'begins with "v=spf1 "',
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
    told: "behind -all",
  },
  {
    did: "put SPF at the domain itself",
    record: "spf",
    records: () => ({ spf: [txt("@", `v=spf1 ${mine} ~all`)] }),
    mistake: "wrong_name",
    told: "has to be at bounce.",
  },
]
