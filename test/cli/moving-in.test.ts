import { expect, test } from "bun:test"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { freshHome, onTerminal } from "./belfry"
import { belfry } from "./lines"

const service = await sharedService()
const { url } = service.listen()

const as = ({ key }: TestProject) => ({ BELFRY_URL: url, BELFRY_API_KEY: key })

/** Imports a file with this content, and returns what was printed as JSON. */
async function move(
  project: TestProject,
  noun: string,
  content: string | Uint8Array,
  ...more: string[]
) {
  const path = join(freshHome(), "export")
  writeFileSync(path, content)
  const { exit, out, err } = await belfry([noun, "import", path, ...more], { env: as(project) })
  return { exit, err, data: out.startsWith("{") ? JSON.parse(out) : undefined }
}

async function all(project: TestProject, noun: string) {
  const { body } = await project.get(`/v1/${noun}?limit=100`)
  return (body.data as Record<string, unknown>[]).reverse()
}

/** An export as it came. */
const file = (name: string) => readFileSync(join(import.meta.dir, "../fixtures/moving-in", name))

const twoPeople = [
  { external_id: "u1", email: "ann2@mailbox.test", name: "Müller" },
  { external_id: "u2", email: "bob2@mailbox.test", name: "Größe" },
]

const sesTopics = (status: string) => [{ TopicName: "news", SubscriptionStatus: status }]

test.each<[string, string | Uint8Array, object, object[]]>([
  [
    "Mailchimp's subscribed",
    file("mailchimp.csv"),
    { created: 2, no_address: 0, unsubscribed: 0 },
    [
      {
        ...{ external_id: "ann1@mailbox.test", email: "ann1@mailbox.test" },
        ...{ name: "Ann O'Neil, Jr.", tags: ["VIP", "Beta"], status: "active" },
      },
      { external_id: "bob1@mailbox.test", name: "Bob Müller" },
    ],
  ],
  [
    "Mailchimp's unsubscribed",
    '"Email Address","First Name",Address,"Phone Number",UNSUB_TIME,UNSUB_CAMPAIGN_ID,UNSUB_REASON,UNSUB_CAMPAIGN_ID\nann@x.test,Ann,"1 Main St","(555) 123-4567","2026-01-02 03:04:05",9,NORMAL,9\n',
    { created: 1, unsubscribed: 1, local_phone: 1 },
    [{ email: "ann@x.test", status: "unsubscribed", metadata: { phone: "(555) 123-4567" } }],
  ],
  [
    "Mailchimp's cleaned",
    "Email Address,CLEAN_TIME,CLEAN_CAMPAIGN_TITLE\nann@x.test,2026-01-02 03:04:05,News\n",
    { created: 1, blocked: 1 },
    [{ email: "ann@x.test", status: "blocked" }],
  ],
  [
    "listmonk's",
    'uuid,email,name,attributes,status,created_at,updated_at\n0b1c,Ann@X.test,Ann,"{""plan"": ""pro"", ""n"": {""a"": 1}}",enabled,2026-01-02,2026-01-02\n0b1d,ben@x.test,,null,blocklisted,,\n0b1e,cem@x.test,,{},disabled,,\n',
    { created: 3, unsubscribed: 1, blocked: 1 },
    [
      { external_id: "ann@x.test", email: "Ann@X.test", metadata: { plan: "pro", n: { a: 1 } } },
      { email: "ben@x.test", status: "blocked", metadata: {} },
      { email: "cem@x.test", status: "unsubscribed" },
    ],
  ],
  [
    "SendGrid's contacts",
    '"EMAIL","FIRST_NAME","LAST_NAME","ADDRESS_LINE_1","ALTERNATE_EMAILS","PHONE_NUMBER","EXTERNAL_ID","CONTACT_ID"\n"ann@x.test","Ann","Example","1 Main St","a2@x.test","+49 151 1234567","","c-1"\n',
    { created: 1 },
    [{ external_id: "ann@x.test", name: "Ann Example", phone: "+491511234567" }],
  ],
  [
    "Mailgun's members",
    '{"items": [\n {"address": "ann@x.test", "name": "Ann", "subscribed": true, "vars": {"age": 26}},\n {"address": "ben@x.test", "name": "", "subscribed": false, "vars": {}}\n],\n "paging": {"next": "https://x.test"}}',
    { created: 2, unsubscribed: 1 },
    [
      { external_id: "ann@x.test", name: "Ann", metadata: { age: 26 }, status: "active" },
      { email: "ben@x.test", name: null, status: "unsubscribed" },
    ],
  ],
  [
    "SES's contacts",
    JSON.stringify({
      Contacts: [
        {
          EmailAddress: "ann@x.test",
          TopicPreferences: sesTopics("OPT_IN"),
          UnsubscribeAll: false,
        },
        { EmailAddress: "ben@x.test", TopicPreferences: [], UnsubscribeAll: true },
        { EmailAddress: "cem@x.test", TopicPreferences: sesTopics("OPT_OUT") },
      ],
      NextToken: "x",
    }),
    { created: 3, unsubscribed: 2 },
    [
      { email: "ann@x.test", status: "active", metadata: { topic_preferences: [{}] } },
      { email: "ben@x.test", status: "unsubscribed" },
      { email: "cem@x.test", status: "unsubscribed" },
    ],
  ],
  [
    "Resend's contacts",
    "id,email,first_name,last_name,unsubscribed,created_at\nc-1,ann@x.test,Ann,Example,true,2026-01-02\nc-2,ben@x.test,,,false,2026-01-02\n",
    { created: 2, unsubscribed: 1 },
    [
      { external_id: "c-1", name: "Ann Example", status: "unsubscribed" },
      { external_id: "c-2", email: "ben@x.test", name: null, status: "active" },
    ],
  ],
  [
    "Resend's list as JSON",
    '{"object":"list","data":[{"id":"c-1","email":"ann@x.test","first_name":null,"unsubscribed":true}],"has_more":false}',
    { created: 1, unsubscribed: 1 },
    [{ external_id: "c-1", email: "ann@x.test", status: "unsubscribed" }],
  ],
  ["a spreadsheet's, which names its separator", file("sep.csv"), { created: 2 }, twoPeople],
  ["windows-1252", file("cp1252.csv"), { created: 2, encoding: "windows-1252" }, twoPeople],
  ["UTF-16 with a mark", file("utf16le_bom.csv"), { created: 2, encoding: "utf-16le" }, twoPeople],
  [
    "addresses alone",
    "ann@x.test\nBen <Ben@x.test>\n\n",
    { created: 2 },
    [{ external_id: "ann@x.test" }, { external_id: "ben@x.test", email: "Ben@x.test" }],
  ],
])("subscribers import takes a file as it comes: %s", async (_, content, counts, people) => {
  const project = await service.project()
  const { exit, data } = await move(project, "subscribers", content)
  expect([exit, data]).toMatchObject([0, { failed: 0, ...counts }])
  expect(await all(project, "subscribers")).toMatchObject(people)
})

const suppressed = (address: string, reason: string, note: string | null = null) => ({
  ...{ address, reason, note, origin: "import" },
})

test.each<[string, string | Uint8Array, object[]]>([
  [
    "Postmark's bounces",
    file("sup_postmark.csv"),
    [suppressed("pm1@x.example", "bounce", "2026-01-02")],
  ],
  [
    "SendGrid's bounces",
    file("sup_sendgrid.csv"),
    [suppressed("sg1@x.example", "bounce", "2023-11-14: 550 5.1.1, user unknown")],
  ],
  [
    "SendGrid's spam reports",
    "ip,email,created\n192.0.2.1,a@x.test,1700000000\n",
    [suppressed("a@x.test", "complaint", "2023-11-14")],
  ],
  [
    "SendGrid's unsubscribes",
    '[{"created": 1700000000, "email": "a@x.test"}]',
    [suppressed("a@x.test", "unsubscribe", "2023-11-14")],
  ],
  [
    "Postmark's",
    "EmailAddress,SuppressionReason,Origin,CreatedAt\r\npm1@x.example,HardBounce,Recipient,2026-01-02T03:04:05-05:00\r\nb@x.test,SpamComplaint,Recipient,\r\nc@x.test,ManualSuppression,Customer,\r\nd@x.test,ManualSuppression,Recipient,\r\n",
    [
      suppressed("pm1@x.example", "bounce", "2026-01-02"),
      suppressed("b@x.test", "complaint"),
      suppressed("c@x.test", "manual"),
      suppressed("d@x.test", "unsubscribe"),
    ],
  ],
  [
    "Postmark's as JSON",
    '{"Suppressions":[{"EmailAddress":"a@x.test","SuppressionReason":"SpamComplaint","Origin":"Recipient","CreatedAt":"2026-01-02T03:04:05-05:00"}]}',
    [suppressed("a@x.test", "complaint", "2026-01-02")],
  ],
  [
    "Mailgun's bounces",
    'address,code,error,created_at\na@x.test,550,No such mailbox,"Fri, 21 Oct 2025 11:02:55 GMT"\n',
    [suppressed("a@x.test", "bounce", "2025-10-21: 550 No such mailbox")],
  ],
  [
    "Mailgun's unsubscribes",
    "address,tags,created_at\na@x.test,*,2026-01-02\n",
    [suppressed("a@x.test", "unsubscribe", "2026-01-02")],
  ],
  [
    "SES's",
    '{\n "SuppressedDestinationSummaries": [\n  {"EmailAddress": "a@x.test", "Reason": "BOUNCE", "LastUpdateTime": "2026-01-02T03:04:05+00:00"},\n  {"EmailAddress": "b@x.test", "Reason": "COMPLAINT", "LastUpdateTime": 1700000000.5}\n ]\n}\n',
    [
      suppressed("a@x.test", "bounce", "2026-01-02"),
      suppressed("b@x.test", "complaint", "2023-11-14"),
    ],
  ],
  [
    "Mailchimp's cleaned",
    "Email Address,Address,CLEAN_TIME,TAGS\na@x.test,1 Main St,2026-01-02 03:04:05,VIP\n",
    [suppressed("a@x.test", "bounce", "2026-01-02")],
  ],
])("suppressions import takes a file as it comes: %s", async (_, content, rows) => {
  const project = await service.project()
  const { exit, data } = await move(project, "suppressions", content)
  expect([exit, data]).toMatchObject([0, { added: rows.length, failed: 0 }])
  expect(await all(project, "suppressions")).toMatchObject(rows)
})

test("suppressions import leaves out who gets mail, and refuses who left one tag only", async () => {
  const project = await service.project()
  const contacts = "email,unsubscribed\na@x.test,false\nb@x.test,true\n"
  const { exit, data } = await move(project, "suppressions", contacts)
  expect([exit, data]).toMatchObject([0, { added: 1, left_out: 1, failed: 0 }])
  expect(await all(project, "suppressions")).toMatchObject([suppressed("b@x.test", "unsubscribe")])
  const tagged = await move(project, "suppressions", "address,tags\nc@x.test,news\n")
  expect([tagged.exit, tagged.data]).toMatchObject([8, { added: 0, failed: 1 }])
})

test("who unsubscribed here stays so, whatever a file says", async () => {
  const project = await service.project()
  await project.post("/v1/subscribers", { external_id: "a", email: "a@x.test" })
  await belfry(["subscribers", "patch", "a", "--status", "blocked"], { env: as(project) })
  for (const status of ["enabled", "unsubscribed"])
    await move(project, "subscribers", `id,email,status\na,a@x.test,${status}\n`)
  expect(await all(project, "subscribers")).toMatchObject([{ status: "blocked" }])
})

test("a list of suppressions has phone numbers and ends, too", async () => {
  const project = await service.project()
  const lines = "address,expires_at\n+4915112345678,\na@x.test,2099-01-01T00:00:00.000Z\nnobody,\n"
  const { exit, data } = await move(project, "suppressions", lines)
  expect([exit, data]).toMatchObject([8, { added: 2, failed: 1 }])
  expect(await all(project, "suppressions")).toMatchObject([
    { channel: "sms", address: "+4915112345678", expires_at: null },
    { channel: "email", expires_at: "2099-01-01T00:00:00.000Z" },
  ])
})

test("one column fills two fields, in either order of --map", async () => {
  for (const map of [
    ["--map", "Kontakt=email", "--map", "Kontakt=external_id"],
    ["--map", "email=Kontakt", "--map", "external_id=Kontakt"],
  ]) {
    const project = await service.project()
    const { exit } = await move(project, "subscribers", "Kontakt,Prénom\na@x.test,Ann\n", ...map)
    expect(exit).toBe(0)
    expect(await all(project, "subscribers")).toMatchObject([
      { external_id: "a@x.test", email: "a@x.test" },
    ])
  }
  const project = await service.project()
  const { exit, err } = await move(project, "subscribers", "id\na\n", "--map", "Typo=name")
  expect([exit, err]).toEqual([7, expect.stringContaining("missing_column")])
})

test("the summary says what became of those who want no mail, and how the file was read", async () => {
  const project = await service.project()
  const path = join(freshHome(), "people.csv")
  writeFileSync(path, Buffer.from("id,name,status\na,Zoë,unsubscribed\nb,Ben,gold\n", "latin1"))
  const words = ["subscribers", "import", path, "--no-color"]
  const { out } = await onTerminal(words, { env: { ...as(project), COLUMNS: "200" } })
  expect(out).toContain("status gold")
  expect(out).toContain("1 unsubscribed, for critical messages only")
  expect(out).toContain("2 without an email address (read as windows-1252)")
})
