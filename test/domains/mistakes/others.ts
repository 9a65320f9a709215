import { dmarc, type Mistake, txt } from "./mistake"

export const othersMistakes: Mistake[] = [
  {
    did: "used typographic quotes",
    record: "dmarc",
    records: () => dmarc("\\226\\128\\156v=DMARC1; p=none\\226\\128\\157"),
    mistake: "typographic_quotes",
    told: "typographic quotes",
  },
  {
    did: "has two DMARC records",
    record: "dmarc",
    records: () => dmarc("v=DMARC1; p=none", "v=DMARC1; p=reject"),
    mistake: "two_dmarc",
    told: "Keep one",
  },
  {
    did: "mistyped the policy",
    record: "dmarc",
    records: () => dmarc("v=DMARC1; p=nonne"),
    mistake: "dmarc_policy",
    told: "p=nonne is no value",
  },
  {
    did: "used commas",
    record: "dmarc",
    records: () => dmarc("v=DMARC1, p=none"),
    mistake: "wrong_separator",
    told: "not by commas",
  },
  {
    did: "wrote an address of reports without mailto:",
    record: "dmarc",
    records: () => dmarc("v=DMARC1; p=none; rua=me@other.test"),
    mistake: "dmarc_address",
    told: "rua=mailto:",
  },
  {
    did: "put DMARC at the domain itself",
    record: "dmarc",
    records: () => ({ dmarc: [txt("@", "v=DMARC1; p=none")] }),
    mistake: "wrong_name",
    told: "has to be at _dmarc.",
  },
  {
    did: "forgot the underscore of DMARC",
    record: "dmarc",
    records: () => ({ dmarc: [txt("dmarc", "v=DMARC1; p=none")] }),
    mistake: "underscore_dropped",
    told: "_dmarc.",
  },
  {
    did: "gave an MX an address",
    record: "return_path",
    records: () => ({ more: ["bounce MX 10 192.0.2.7."] }),
    mistake: "mx_address",
    told: "never an address such as 192.0.2.7",
  },
  {
    did: "gave an MX an alias",
    record: "return_path",
    records: (_, zone) => ({
      more: [`bounce MX 10 mail.${zone}.`, "mail CNAME www", "www A 192.0.2.7"],
    }),
    mistake: "mx_alias",
    told: "an alias of www.",
  },
  {
    did: "forgot the dot behind the host of an MX",
    record: "return_path",
    records: () => ({ more: ["bounce MX 10 mx.belfry.test"] }),
    mistake: "trailing_dot_missing",
    told: "with a dot at the end",
  },
  {
    did: "put an address where the CNAME belongs",
    record: "tracking",
    records: () => ({ more: ["links A 192.0.2.7"] }),
    mistake: "address_instead",
    told: "has the address 192.0.2.7",
    row: { tracking_subdomain: "links" },
  },
]
