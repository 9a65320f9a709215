import { dkim, type Mistake, txt } from "./mistake"

export const dkimMistakes: Mistake[] = [
  {
    did: "split the key into two records",
    record: "dkim",
    records: (p) => ({
      dkim: [
        txt("svc1._domainkey", `v=DKIM1; k=rsa; p=${p.slice(0, 200)}`),
        txt("svc1._domainkey", p.slice(200)),
      ],
    }),
    mistake: "split_into_records",
    told: "It has to be one record",
  },
  {
    did: "quoted the parts of the key within the value",
    record: "dkim",
    records: (p) => dkim(`v=DKIM1; k=rsa; p=${p.slice(0, 200)}\\" \\"${p.slice(200)}`),
    mistake: "quoted",
    told: "without quotes",
  },
  {
    did: "used a form that cuts off after 255 characters",
    record: "dkim",
    records: (p) => dkim(`v=DKIM1; k=rsa; p=${p}`.slice(0, 255)),
    mistake: "truncated",
    told: "The key is cut off after 237 of 392",
  },
  {
    did: "lost a semicolon",
    record: "dkim",
    records: (p) => dkim(`v=DKIM1; k=rsa p=${p}`),
    mistake: "missing_semicolon",
    told: "semicolon is missing",
  },
  {
    did: "doubled a semicolon",
    record: "dkim",
    records: (p) => dkim(`v=DKIM1;; k=rsa; p=${p}`),
    mistake: "extra_semicolon",
    told: "Remove one",
  },
  {
    did: "escaped the semicolons",
    record: "dkim",
    records: (p) => dkim(`v=DKIM1\\\\; k=rsa\\\\; p=${p}`),
    mistake: "backslashes",
    told: "backslashes",
  },
  {
    did: "wrote a tag in capitals",
    record: "dkim",
    records: (p) => dkim(`v=DKIM1; k=rsa; P=${p}`),
    mistake: "uppercase_tag",
    told: "P= has to be p=",
  },
  {
    did: "allowed no hash but SHA-1",
    record: "dkim",
    records: (p) => dkim(`v=DKIM1; h=sha1; k=rsa; p=${p}`),
    mistake: "key_hash",
    told: "shuts out SHA-256",
  },
  {
    did: "kept the key for something else than mail",
    record: "dkim",
    records: (p) => dkim(`v=DKIM1; s=tlsrpt; k=rsa; p=${p}`),
    mistake: "key_service",
    told: "keeps the key from mail",
  },
  {
    did: "put the key under another selector",
    record: "dkim",
    records: (p) => ({ dkim: [txt("default._domainkey", `v=DKIM1; k=rsa; p=${p}`)] }),
    mistake: "wrong_selector",
    told: "the selector has to be svc1",
  },
  {
    did: "left the key of another service there",
    record: "dkim",
    records: (p) => dkim(`v=DKIM1; k=rsa; p=${[...p].reverse().join("")}`),
    mistake: "other_key",
    told: "of another service",
  },
  {
    did: "mistyped a character of the key",
    record: "dkim",
    records: (p) =>
      dkim(`v=DKIM1; k=rsa; p=${p.slice(0, 100)}${p[100] === "A" ? "B" : "A"}${p.slice(101)}`),
    mistake: "wrong_bytes",
    told: "from character 101 on",
  },
  {
    did: "let a form turn plus signs into spaces",
    record: "dkim",
    records: (p) => dkim(`v=DKIM1; k=rsa; p=${p.replaceAll("+", " ")}`),
    mistake: "plus_lost",
    told: "plus signs",
  },
  {
    did: "revoked the key",
    record: "dkim",
    records: () => dkim("v=DKIM1; k=rsa; p="),
    mistake: "revoked",
    told: "p= is empty",
  },
]
