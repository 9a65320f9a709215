import { TOKEN } from "../subject"
import { type Mistake, txt, verification } from "./mistake"

export const verificationMistakes: Mistake[] = [
  {
    did: "entered the full name, to which the provider appended the zone",
    record: "verification",
    records: (_, zone) => ({ verification: [txt(`_svc-verify.${zone}`, verification)] }),
    mistake: "zone_appended_twice",
    told: 'Enter "_svc-verify" as the name',
  },
  {
    did: "dropped the underscore of the name",
    record: "verification",
    records: () => ({ verification: [txt("svc-verify", verification)] }),
    mistake: "underscore_dropped",
    told: "without the underscore",
  },
  {
    did: "put the TXT at the domain itself",
    record: "verification",
    records: () => ({ verification: [txt("@", verification)] }),
    mistake: "wrong_name",
    told: "must be at _svc-verify.",
  },
  {
    did: "quoted the value once more",
    record: "verification",
    records: () => ({ verification: [txt("_svc-verify", `\\"${verification}\\"`)] }),
    mistake: "quoted",
    told: "without quotes",
  },
  {
    did: "left the word before the token away",
    record: "verification",
    records: () => ({ verification: [txt("_svc-verify", TOKEN)] }),
    mistake: "prefix_missing",
    told: 'Put "svc-domain-verification=" before it',
  },
  {
    did: "left an old token there",
    record: "verification",
    records: () => ({
      verification: [txt("_svc-verify", `svc-domain-verification=${"f".repeat(32)}`)],
    }),
    mistake: "other_token",
    told: "an earlier attempt",
  },
  {
    did: "copied a part of the token",
    record: "verification",
    records: () => ({ verification: [txt("_svc-verify", verification.slice(0, -3))] }),
    mistake: "truncated",
    told: "cut off after 53 of 56",
  },
  {
    did: "pasted the whole line of the zone file",
    record: "verification",
    records: () => ({
      verification: [txt("_svc-verify", `_svc-verify IN TXT \\"${verification}\\"`)],
    }),
    mistake: "record_pasted",
    told: "only the part after TXT",
  },
  {
    did: "copied a tab along",
    record: "verification",
    records: () => ({ verification: [txt("_svc-verify", `${verification}\\009`)] }),
    mistake: "invisible_characters",
    told: "tab",
  },
  {
    did: "made the name an alias of something else",
    record: "verification",
    records: () => ({ verification: ["_svc-verify CNAME other", txt("other", "hello")] }),
    mistake: "alias_in_the_way",
    told: "is an alias (CNAME) of other.",
  },
]
