import type { Say } from "../core/name-server"

/** Records of a zone as the name server of the tests takes them, by `TYPE name`. */
export type ZoneRows = Record<string, Say>

export interface SpfSample {
  /** The SPF record of the domain `D`, or what its TXT question gets. `X` is another domain. */
  record: string | string[] | "SERVFAIL"
  /** Further records: `A mx.D` and so on. */
  more?: (names: { D: string; X: string }) => ZoneRows
  address?: string
}

export const txtRows = (text: string): Say => [{ data: text.match(/[\s\S]{1,200}/g) ?? [""] }]

const a = (...addresses: string[]): Say => addresses.map((address) => ({ address }))
const mx = (...hosts: string[]): Say =>
  hosts.map((exchange, at) => ({ exchange, priority: 10 * at + 10 }))

/** The client, unless a sample names another. */
export const CLIENT = "192.0.2.10"
const V6 = "2001:db8:0:0:0:0:0:10"

const numbers = (count: number) => Array.from({ length: count }, (_, number) => number)

/** The last host is the client. */
const manyMx = (D: string, count: number): ZoneRows => ({
  [`MX ${D}`]: mx(...numbers(count).map((number) => `m${number}.${D}`)),
  ...Object.fromEntries(
    numbers(count).map((number) => [
      `A m${number}.${D}`,
      a(number === count - 1 ? CLIENT : `198.51.100.${number}`),
    ]),
  ),
})

/** Each mechanism, modifier and limit of RFC 7208, right and wrong. */
export const SPF_SAMPLES: Record<string, SpfSample> = {
  "no record": { record: [] },
  "another text only": { record: ["google-site-verification=abc", "v=spf10 -all"] },
  nobody: { record: "v=spf1 -all" },
  soft: { record: "v=spf1 ~all" },
  neutral: { record: "v=spf1 ?all" },
  everybody: { record: "v=spf1 +all" },
  empty: { record: "v=spf1" },
  "beside other texts": { record: ["MS=ms123", "v=spf1 ip4:192.0.2.0/24 -all"] },
  ip4: { record: "v=spf1 ip4:192.0.2.10 -all" },
  "ip4 network": { record: "v=spf1 ip4:192.0.2.0/28 -all" },
  "ip4 other network": { record: "v=spf1 ip4:198.51.100.0/24 -all" },
  "ip4 negative": { record: "v=spf1 -ip4:192.0.2.0/24 +all" },
  ip6: { record: "v=spf1 ip6:2001:db8::/32 -all", address: V6 },
  "ip6 other": { record: "v=spf1 ip6:2001:db9::/32 ~all", address: V6 },
  "ip4 for an ip6 client": { record: "v=spf1 ip4:0.0.0.0/0 -all", address: V6 },
  a: { record: "v=spf1 a -all", more: ({ D }) => ({ [`A ${D}`]: a("192.0.2.10") }) },
  "a of a host": {
    record: "v=spf1 a:out.D/28 -all",
    more: ({ D }) => ({ [`A out.${D}`]: a("198.51.100.1", "192.0.2.2") }),
  },
  "a that does not match": {
    record: "v=spf1 a -all",
    more: ({ D }) => ({ [`A ${D}`]: a("192.0.2.11") }),
  },
  "a for ip6": {
    record: "v=spf1 a//64 -all",
    more: ({ D }) => ({ [`AAAA ${D}`]: a("2001:db8:0:0:0:0:0:99") }),
    address: V6,
  },
  mx: {
    record: "v=spf1 mx -all",
    more: ({ D }) => ({
      [`MX ${D}`]: mx(`mx1.${D}`, `mx2.${D}`),
      [`A mx1.${D}`]: a("198.51.100.1"),
      [`A mx2.${D}`]: a("192.0.2.10"),
    }),
  },
  "mx of another domain": {
    record: "v=spf1 mx:X/24 ~all",
    more: ({ X }) => ({ [`MX ${X}`]: mx(`mx.${X}`), [`A mx.${X}`]: a("192.0.2.200") }),
  },
  "ten mx": {
    record: "v=spf1 mx -all",
    more: ({ D }) => manyMx(D, 10),
  },
  "eleven mx": {
    record: "v=spf1 mx -all",
    more: ({ D }) => manyMx(D, 11),
  },
  include: {
    record: "v=spf1 include:X -all",
    more: ({ X }) => ({ [`TXT ${X}`]: txtRows("v=spf1 ip4:192.0.2.0/24 -all") }),
  },
  "include that does not match": {
    record: "v=spf1 include:X ~all",
    more: ({ X }) => ({ [`TXT ${X}`]: txtRows("v=spf1 ip4:198.51.100.0/24 -all") }),
  },
  "include negative": {
    record: "v=spf1 -include:X +all",
    more: ({ X }) => ({ [`TXT ${X}`]: txtRows("v=spf1 ip4:192.0.2.0/24 ?all") }),
  },
  "include of nothing": { record: "v=spf1 include:X -all" },
  "include of a broken record": {
    record: "v=spf1 include:X -all",
    more: ({ X }) => ({ [`TXT ${X}`]: txtRows("v=spf1 ip4:192.0.2.300 -all") }),
  },
  "include without an answer": {
    record: "v=spf1 include:X -all",
    more: ({ X }) => ({ [`TXT ${X}`]: "SERVFAIL" }),
  },
  "include of itself": { record: "v=spf1 include:D -all" },
  redirect: {
    record: "v=spf1 redirect=_spf.X",
    more: ({ X }) => ({ [`TXT _spf.${X}`]: txtRows("v=spf1 ip4:192.0.2.10 -all") }),
  },
  "redirect to a refusal": {
    record: "v=spf1 ip4:198.51.100.1 redirect=X",
    more: ({ X }) => ({ [`TXT ${X}`]: txtRows("v=spf1 -all") }),
  },
  "redirect to nothing": { record: "v=spf1 redirect=X" },
  "redirect beside all": {
    record: "v=spf1 redirect=X ~all",
    more: ({ X }) => ({ [`TXT ${X}`]: txtRows("v=spf1 +all") }),
  },
  "redirect without an answer": {
    record: "v=spf1 redirect=X",
    more: ({ X }) => ({ [`TXT ${X}`]: "SERVFAIL" }),
  },
  "two redirects": { record: "v=spf1 redirect=X redirect=X" },
  "exists with the address": {
    record: "v=spf1 exists:%{i}.ok.D -all",
    more: ({ D }) => ({ [`A 192.0.2.10.ok.${D}`]: a("127.0.0.2") }),
  },
  "exists with the address turned": {
    record: "v=spf1 exists:%{ir}.%{v}.ok.%{d} -all",
    more: ({ D }) => ({ [`A 10.2.0.192.in-addr.ok.${D}`]: a("127.0.0.2") }),
  },
  "exists with the local part": {
    record: "v=spf1 exists:%{l}.%{o2}._u.D -all",
    more: ({ D }) => ({
      [`A ann.${D.split(".").slice(-2).join(".")}._u.${D}`]: a("127.0.0.2"),
    }),
  },
  "exists with HELO": {
    record: "v=spf1 exists:%{h}.D ?all",
    more: ({ D }) => ({ [`A mx.client.test.${D}`]: a("127.0.0.2") }),
  },
  "exists for ip6": {
    record: "v=spf1 exists:%{ir}.D -all",
    more: ({ D }) => ({
      [`A 0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.${D}`]: a("127.0.0.2"),
    }),
    address: V6,
  },
  "parts of a name, turned": {
    record: "v=spf1 exists:%{d1r}.%{o1}.m.D -all",
    more: ({ D }) => {
      const first = D.split(".")[0]
      const last = D.split(".").at(-1)
      return { [`A ${first}.${last}.m.${D}`]: a("127.0.0.2") }
    },
  },
  "other delimiters": {
    record: "v=spf1 exists:%{l1r-+}.m.D -all",
    more: ({ D }) => ({ [`A ann.m.${D}`]: a("127.0.0.2") }),
  },
  "escaped signs": {
    record: "v=spf1 exists:%{L}%%-%-.m.D ~all",
    more: ({ D }) => ({ [`A ann%-%20.m.${D}`]: a("127.0.0.2") }),
  },
  "a macro for explanations only": { record: "v=spf1 exists:%{c}.D -all" },
  "a macro without parts": { record: "v=spf1 exists:%{d0}.D -all" },
  "a macro without an end": { record: "v=spf1 exists:%{d.D -all" },
  "a percent sign alone": { record: "v=spf1 exists:%.D -all" },
  "a dot at the end": {
    record: "v=spf1 a:out.D. -all",
    more: ({ D }) => ({ [`A out.${D}`]: a(CLIENT) }),
  },
  "a network of everything": {
    record: "v=spf1 a/0 -all",
    more: ({ D }) => ({ [`A ${D}`]: a("198.51.100.1") }),
  },
  "both lengths": {
    record: "v=spf1 mx/24//48 -all",
    more: ({ D }) => ({ [`MX ${D}`]: mx(`mx.${D}`), [`A mx.${D}`]: a("192.0.2.250") }),
  },
  "a length without a number": { record: "v=spf1 a/ -all" },
  "a name of one label": { record: "v=spf1 a:localhost -all" },
  "a name that is a number": { record: "v=spf1 a:D.123 -all" },
  "an address for a name": { record: "v=spf1 a:192.0.2.10 -all" },
  "a colon for an equals sign": { record: "v=spf1 redirect:X" },
  "an equals sign for a colon": { record: "v=spf1 include=X -all" },
  "all with a value": { record: "v=spf1 all:X" },
  "two spaces": { record: "v=spf1  ip4:192.0.2.10   -all " },
  "a tab": { record: "v=spf1\tip4:192.0.2.10 -all" },
  "a letter outside ASCII": { record: "v=spf1 a:b\xfccher.D -all" },
  "terms behind all": {
    record: "v=spf1 -all include:X",
    more: ({ X }) => ({ [`TXT ${X}`]: txtRows("v=spf1 +all") }),
  },
  "an include that redirects": {
    record: "v=spf1 include:X -all",
    more: ({ X }) => ({
      [`TXT ${X}`]: txtRows(`v=spf1 redirect=r.${X}`),
      [`TXT r.${X}`]: txtRows("v=spf1 ip4:192.0.2.10 -all"),
    }),
  },
  "a null mx": { record: "v=spf1 mx -all", more: ({ D }) => ({ [`MX ${D}`]: mx("") }) },
  "an unknown macro": { record: "v=spf1 exists:%{z}.D -all" },
  ptr: {
    record: "v=spf1 ptr -all",
    more: ({ D }) => ({
      "PTR 10.2.0.192.in-addr.arpa": [{ domain: "mx.client.test" }],
      [`PTR ${REVERSED}`]: [{ domain: `out.${D}` }],
      [`A out.${D}`]: a(PTR_CLIENT),
    }),
    address: "192.0.2.77",
  },
  "ptr of another name": { record: "v=spf1 ptr:X ~all" },
  "a name by ptr in a macro": {
    record: "v=spf1 exists:%{p}.D -all",
    more: ({ D }) => ({ [`A unknown.${D}`]: a("127.0.0.2") }),
    address: "192.0.2.78",
  },
  "ten look-ups": {
    record: `v=spf1 ${numbers(10)
      .map((number) => `a:h${number}.D`)
      .join(" ")} -all`,
    more: ({ D }) =>
      Object.fromEntries(
        numbers(10).map((number) => [
          `A h${number}.${D}`,
          a(number === 9 ? "192.0.2.10" : "198.51.100.1"),
        ]),
      ),
  },
  "eleven look-ups": {
    record: `v=spf1 ${numbers(11)
      .map((number) => `a:h${number}.D`)
      .join(" ")} -all`,
    more: ({ D }) =>
      Object.fromEntries(numbers(11).map((number) => [`A h${number}.${D}`, a("198.51.100.1")])),
  },
  "a long chain of includes": {
    record: "v=spf1 include:n0.X -all",
    more: ({ X }) =>
      Object.fromEntries(
        numbers(12).map((number) => [
          `TXT n${number}.${X}`,
          txtRows(`v=spf1 include:n${number + 1}.${X} -all`),
        ]),
      ),
  },
  "two void look-ups": { record: "v=spf1 a:v1.D a:v2.D ip4:192.0.2.10 -all" },
  "three void look-ups": { record: "v=spf1 a:v1.D a:v2.D a:v3.D ip4:192.0.2.10 -all" },
  "two records": { record: ["v=spf1 -all", "v=spf1 +all"] },
  "an unknown mechanism": { record: "v=spf1 ip4:192.0.2.10 foo:bar -all" },
  "a wrong address": { record: "v=spf1 ip4:192.0.2.999 -all" },
  "a wrong network": { record: "v=spf1 ip4:192.0.2.0/33 -all" },
  "include without a name": { record: "v=spf1 include: -all" },
  "an unknown modifier": { record: "v=spf1 ip4:192.0.2.10 future=x.y -all" },
  "an explanation": {
    record: "v=spf1 -all exp=why.D",
    more: ({ D }) => ({ [`TXT why.${D}`]: txtRows("%{i} may not send for %{d}") }),
  },
  "upper case": { record: "V=SPF1 IP4:192.0.2.10 -ALL" },
  "a long record": {
    record: `v=spf1 ${numbers(40)
      .map((number) => `ip4:198.51.100.${number}`)
      .join(" ")} ip4:192.0.2.10 -all`,
  },
  "no answer": { record: "SERVFAIL" },
  "no answer for a host": {
    record: "v=spf1 a:slow.D -all",
    more: ({ D }) => ({ [`A slow.${D}`]: "SERVFAIL" }),
  },
}

const PTR_CLIENT = "192.0.2.77"
const REVERSED = "77.2.0.192.in-addr.arpa"

/** The records of a sample for a domain. */
export function spfZone({ record, more }: SpfSample, D: string, X: string): ZoneRows {
  const fill = (text: string) => text.replace(/\b[DX]\b/g, (name) => (name === "D" ? D : X))
  const own: Say =
    record === "SERVFAIL"
      ? record
      : [record].flat().flatMap((text) => txtRows(fill(text)) as { data: string[] }[])
  return { [`TXT ${D}`]: own, ...more?.({ D, X }) }
}
