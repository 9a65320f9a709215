import type { Records } from "../harness/knot"
import type { TestProject } from "../harness/service"

export interface DnsRecord {
  purpose: string
  type: string
  host: string
  value: string
  status: string
  required: boolean
  hint: string | null
}

export interface Domain {
  id: string
  domain: string
  status: string
  dns_records: DnsRecord[]
  next_check_at: string | null
  dkim_selectors: string[]
}

let number = 0

/** A name that no other test of this process has. */
export const freshName = () => `acme${++number}.test`

export async function addDomain(project: TestProject, own: object = {}): Promise<Domain> {
  const { status, body } = await project.post("/v1/domains", { domain: freshName(), ...own })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.data
}

/** Lines of a zone file for some of the records that were asked for. */
export const lines = ({ dns_records, domain }: Domain, purposes: string[]): Records =>
  dns_records
    .filter(({ purpose, required }) => required && purposes.includes(purpose))
    .map(({ host, value }) => `${host.slice(0, -domain.length - 1)} TXT "${value}"`)

/** What a domain has to have. */
export const ALL = ["verification", "spf", "dkim", "dmarc"]

export const check = (project: TestProject, { id }: { id: string }) =>
  project.post(`/v1/domains/${id}/check`)

export const read = async (project: TestProject, { id }: { id: string }): Promise<Domain> =>
  (await project.get(`/v1/domains/${id}`)).body.data
