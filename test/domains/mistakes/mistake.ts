import type { DomainRow } from "../../../src/domains/expected-records"
import type { RecordCheck, RecordChecks } from "../../../src/domains/tables"
import type { Right } from "../subject"
import { TOKEN } from "../subject"

export interface Mistake {
  /** What somebody did. */
  did: string
  record: keyof RecordChecks
  records: (p: string, zone: string) => Partial<Right>
  mistake: string
  /** A part of what is told to him. */
  told: string
  status?: RecordCheck["status"]
  row?: Partial<DomainRow>
}

export const verification = `svc-domain-verification=${TOKEN}`
export const mine = "a:mx.belfry.test"
export const txt = (name: string, text: string) => `${name} TXT "${text}"`
export const dkim = (text: string): Partial<Right> => ({ dkim: [txt("svc1._domainkey", text)] })
export const spf = (...texts: string[]): Partial<Right> => ({
  spf: texts.map((text) => txt("bounce", text)),
})
export const dmarc = (...texts: string[]): Partial<Right> => ({
  dmarc: texts.map((text) => txt("_dmarc", text)),
})
