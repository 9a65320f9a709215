import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { leftover } from "../harness/leftovers"
import { freshHome } from "./belfry"
import { email, FakeApi, ID, received } from "./fake-api"
import { ACCOUNT, session } from "./signed-in"

const PERSON = "0199a1c2-0000-7000-8000-000000000002"
const AT = "2026-11-21T10:30:00.000Z"
const TOKEN = "belfry_invitation_1"

/** A folder with one template that the server has, and two words for it alone. */
const FOLDER = freshHome()
const ONLY = ["--only", "receipt"]
const PEOPLE_FILE = join(FOLDER, "people.csv")

/** Writes what the commands read. A file of tests that ran before in this process may have tidied it away. */
export function writeFiles() {
  mkdirSync(join(leftover(FOLDER), "receipt"), { recursive: true })
  writeFileSync(join(FOLDER, "receipt", "template.json"), '{"subject": "s"}\n')
  writeFileSync(join(FOLDER, "receipt", "email.html"), "h\n")
  writeFileSync(PEOPLE_FILE, "Id,Email\nuser-42,a@b.c\n")
}

/** Every command that talks to a server, with all of its filters. */
export const calls: Record<string, string[]> = {
  status: [],
  "emails send": ["--to", "a@b.c", "--from", "m@b.c", "--subject", "s", "--text", "t", "--wait"],
  "emails preflight": ["--to", "a@b.c", "--from", "m@b.c", "--subject", "s", "--text", "t"],
  "emails batch": ["-"],
  "emails list": [
    ...["--status", "sent", "--to", "a@b.c", "--from", "m@b.c", "--tag", "t", "--domain", "b.c"],
    ...["--subject", "s", "--batch", ID, "--since", "1h", "--until", "1m", "--limit", "3"],
  ],
  "emails get": [ID],
  "emails events": [ID],
  "emails attempts": [ID],
  "emails tracking": [ID],
  "emails raw": [ID],
  "emails content": [ID],
  "emails attachment": [ID, ID],
  "emails tail": [ID, "--since", "1h"],
  "emails explain": [ID],
  "emails cancel": [ID],
  "emails resend": [ID, "--to", "x@b.c"],
  "emails reschedule": [ID, "in 10 min"],
  "sms send": ["+14155550100", "hi", "--tag", "t", "--max-segments", "2", "--wait"],
  "sms batch": ["-"],
  "sms list": [
    ...["--status", "sent", "--to", "+14155550100", "--direction", "outbound", "--tag", "t"],
    ...["--since", "1h", "--until", "1m", "--limit", "3"],
  ],
  "sms get": [ID],
  "sms explain": [ID],
  "sms cancel": [ID],
  "sms segments": ["hi"],
  "sms stats": ["--period", "2026-11"],
  "push send": [
    ...["hi", "there", "--to", "user-42", "--tag", "t", "--data", "{}", "--badge", "unread"],
    ...["--action", "yes=Yes=/7", "--apns", "{}", "--ttl-seconds", "60", "--test", "--wait"],
  ],
  "push batch": ["-"],
  "push list": [
    ...["--status", "sent", "--user-id", "user-42", "--device-id", "phone-1", "--tag", "t"],
    ...["--platform", "ios", "--batch", ID, "--since", "1h", "--until", "1m", "--limit", "3"],
  ],
  "push get": [ID],
  "push explain": [ID],
  "push cancel": [ID],
  "push ack": [ID, "opened", "--ack-token", "t"],
  "push stats": ["--period", "2026-11"],
  "push public-key": [],
  "push config get": [],
  "push config set": ["webpush", "--subject", "mailto:a@b.c"],
  "push config rm": ["apns"],
  "push config test": ["apns", "--device-id", "phone-1"],
  "devices list": ["--user-id", "u", "--platform", "web", "--status", "active", "--limit", "2"],
  "devices get": ["phone-1"],
  "devices register": [
    ...["--user-id", "u", "--device-id", "phone-1", "--platform", "ios", "--token", "t"],
    ...["--metadata", "a=b", "--app-id", "com.b.c", "--idempotency-key", "k1"],
  ],
  "devices batch": ["-"],
  "devices update": ["phone-1", "--token", "t", "--enabled", "off"],
  "devices unlink": ["phone-1"],
  "devices rm": ["phone-1"],
  "devices stats": [],
  "scheduled list": ["--channel", "email", "--status", "queued", "--limit", "2"],
  "scheduled get": [ID],
  "scheduled cancel": [ID],
  "templates create": [
    ...["--name", "receipt", "--subject", "s", "--tag", "t", "--locale", "en"],
    ...["--layout", ID, "--description", "d", "--draft", "--idempotency-key", "k"],
  ],
  "templates list": ["--status", "draft", "--channel", "sms", "--tag", "t", "--search", "s"],
  "templates get": [ID],
  "templates edit": [ID, "--subject", "s", "--name", "other"],
  "templates delete": [ID, "--force", "on"],
  "templates publish": [ID, "--version", "2"],
  "templates archive": [ID],
  "templates duplicate": [ID, "--name", "copy"],
  "templates versions": [ID],
  "templates version": [ID, "1"],
  "templates render-draft": ["--subject", "s {{a}}", "--var", "a=b"],
  "templates rollback": [ID, "--version", "1"],
  "templates render": [ID, "--var", "a=b", "--channel", "email", "--version", "1"],
  "templates pull": [join(FOLDER, "copies"), "receipt"],
  "templates push": [FOLDER, ...ONLY, "--draft"],
  "templates check": [FOLDER, ...ONLY],
  "templates diff": [FOLDER, ...ONLY],
  "templates test-send": [ID, "a@b.c", "--var", "a=b"],
  "ai suggest": ["--body", "b", "--channel", "sms"],
  "ai draft": ["b", "--tone", "formal", "--locale", "de", "--variable", "a", "--save", "receipt"],
  "ai rewrite": ["shorter", "--content", "c", "--type", "list", "--max-length", "80"],
  "ai workflow": ["welcome"],
  "ai analyze": ["--subject", "s", "--body", "b", "--topic", "news", "--audience", "10"],
  "ai usage": ["--period", "2026-11"],
  "ai entitlement": [],
  "inbound list": [
    ...["--to", "a@b.c", "--from", "m@b.c", "--kind", "dmarc_report", "--thread", ID],
    ...["--since", "1h", "--until", "1m", "--limit", "3"],
  ],
  "inbound get": [ID],
  "inbound raw": [ID],
  "inbound attachments": [ID, "0"],
  "inbound wait": ["--to", "a@b.c", "--since", "1h", "--extract", "otp"],
  "inbound reply": [
    ...[ID, "--text", "hi", "--from", "m@b.c", "--subject", "s", "--idempotency-key", "k1"],
  ],
  "inbound forward": [ID, "--to", "a@b.c", "--from", "m@b.c"],
  "inbound redeliver": [ID],
  "inbound rm": [ID],
  "inbound routes list": ["--limit", "2"],
  "inbound routes create": ["*@b.c", "--forward", "a@b.c", "--priority", "5"],
  "inbound routes get": [ID],
  "inbound routes update": [ID, "--match", "a@b.c", "--drop"],
  "inbound routes rm": [ID],
  "subscribers reachability": [ID, "--category", "news"],
  "subscribers preferences get": [ID],
  "subscribers preferences set": [ID, "--choose", "email.categories.news=off"],
  "subscribers preferences replace": [ID, "--choose", "sms.enabled=off"],
  "subscribers preferences default": [],
  "subscribers preferences set-default": ["--choose", "quiet_hours.start=22:00"],
  "categories list": ["--limit", "2"],
  "categories create": [
    ...["--name", "News", "--slug", "news", "--critical", "off", "--default", "off"],
    ...["--visibility", "private", "--channels", "email", "--description", "d"],
  ],
  "categories get": [ID],
  "categories update": [ID, "--name", "Other", "--channels", "sms"],
  "categories rm": ["news"],
  "inbox send": [
    ...["--to", "user-42", "--title", "t", "--body", "b", "--action-url", "/7", "--tag", "t"],
    ...["--action-label", "Show", "--action", "accept=Accept=https://b.c/", "--icon", "/i.svg"],
    ...["--image-url", "/i.png", "--category", "news", "--priority", "high", "--data", "{}"],
    ...["--metadata", "a=b", "--collapse-key", "k", "--expires", "7d", "--var", "a=b"],
    ...["--idempotency-key", "k1"],
  ],
  "inbox list": [
    ...["--external-id", "user-42", "--category", "news", "--tag", "t", "--state", "unseen"],
    ...["--limit", "2"],
  ],
  "inbox get": [ID],
  "inbox update": [ID, "--title", "t", "--read", "--unarchived"],
  "inbox rm": [ID],
  "inbox stats": ["--period", "2026-11"],
  "inbox tail": ["--external-id", "user-42", "--limit", "1"],
  "inbox token": ["--external-id", "user_42", "--ttl-seconds", "60"],
  "subscribers list": [
    ...["--search", "ann", "--email", "a@b.c", "--phone", "+4915112345678", "--tag", "t"],
    ...["--external-id", "u", "--status", "active", "--topic", "news"],
  ],
  "subscribers create": ["user-42", "--email", "a@b.c", "--metadata", "a=b", "--tag", "t"],
  "subscribers upsert": ["user-42", "--name", "Ann", "--phone", "+4915112345678"],
  "subscribers patch": ["user-42", "--status", "blocked", "--new-external-id", "user-43"],
  "subscribers get": ["user-42"],
  "subscribers rm": ["user-42"],
  "subscribers unsubscribes": [ID, "--limit", "2"],
  "subscribers unsubscribe": [ID, "email", "--category", "news", "--reason", "r"],
  "subscribers resubscribe": [ID, "email", "--category", "news", "--reason", "r"],
  "subscribers consents": [ID, "--limit", "2"],
  "subscribers consent": [
    ...[ID, "email", "--action", "granted", "--source", "import", "--proof", "p"],
    ...["--category", "news"],
  ],
  "subscribers merge": [ID, "user-17"],
  "subscribers export": [ID],
  "subscribers erase": [ID],
  "subscribers import": [PEOPLE_FILE, "--map", "Id=external_id", "--mode", "skip"],
  "users list": [
    ...["--application", ID, "--environment", "test", "--email", "a@b.c", "--q", "ann"],
    ...["--phone-number", "+14155550100", "--status", "active", "--organization-id", ID],
    ...["--limit", "2"],
  ],
  "users get": [ID],
  "users create": ["--email", "a@b.c", "--email-verified", "on", "--password-stdin"],
  "users invite": ["a@b.c", "--redirect-url", "https://b.c/"],
  "users import": [PEOPLE_FILE, "--hash", "bcrypt", "--environment", "test"],
  "users update": [ID, "--name", "n", "--app-metadata", "role=editor"],
  "users rm": [ID],
  "users suspend": [ID, "--reason", "abuse"],
  "users activate": [ID],
  "users password": [ID, "--password-stdin", "--keep-sessions", "on"],
  "users impersonate": [ID, "--reason", "r", "--ttl-seconds", "60"],
  "users sessions": [ID, "--limit", "2"],
  "users revoke-sessions": [ID],
  "users identities": [ID],
  "orgs list": [
    ...["--application", ID, "--environment", "test", "--user-id", ID, "--q", "acme"],
    ...["--limit", "2"],
  ],
  "orgs get": [ID],
  "orgs create": ["--name", "Acme", "--slug", "acme", "--metadata", "a=b"],
  "orgs update": [ID, "--mfa-required", "on", "--domain", "b.c"],
  "orgs rm": [ID],
  "orgs members list": [ID, "--limit", "2"],
  "orgs members add": [ID, ID, "--role", "admin", "--permission", "invoices:read"],
  "orgs members update": [ID, ID, "--role", "owner", "--permission", "none"],
  "orgs members rm": [ID, ID],
  "orgs invitations list": [ID],
  "orgs invitations create": [ID, "a@b.c", "--role", "admin", "--redirect-url", "https://b.c/"],
  "orgs invitations rm": [ID, ID],
  "users passkeys": ["--token-stdin"],
  "users mfa get": [ID],
  "users mfa enroll": [ID, "--method", "sms", "--phone-number", "+14155550100"],
  "users mfa verify": [ID, "123456", "--method", "sms"],
  "users mfa reset": [ID],
  "suppressions list": [
    ...["--reason", "bounce", "--channel", "email", "--address", "a@b.c", "--origin", "event"],
    ...["--diagnostic", "ofr", "--since", "7d", "--limit", "2"],
  ],
  "suppressions lift": ["--diagnostic", "ofr", "--since", "7d"],
  "suppressions add": ["a@b.c", "--reason", "manual", "--note", "n", "--expires", "90d"],
  "suppressions get": [ID],
  "suppressions check": ["a@b.c", "--category", "news", "--topic", "t"],
  "suppressions rm": [ID, "a@b.c"],
  "suppressions export": [],
  "suppressions import": ["-", "--reason", "bounce", "--note", "n"],
  "topics list": ["--search", "news", "--limit", "2"],
  "topics create": [
    ...["news", "--name", "News", "--description", "d", "--default", "off"],
    ...["--visibility", "public", "--idempotency-key", "k1"],
  ],
  "topics get": ["news"],
  "topics update": ["news", "--name", "News", "--description", "none", "--visibility", "private"],
  "topics rm": ["news"],
  "topics members": ["news", "--limit", "2"],
  "topics of": ["user-1", "--limit", "2"],
  "topics join": ["news", "user-1", ID],
  "topics leave": ["news", "user-1"],
  "topics publish": [
    ...["news", "--channel", "email", "--subject", "s", "--text", "t", "--from", "m@b.c"],
    ...["--channel", "sms", "--sms-body", "hi"],
    ...["--category", "news", "--var", "a=b", "--exclude", "user-1", "--dedupe-key", "k1"],
    ...["--schedule-at", "in 10 min", "--expires", "90d", "--ignore-preferences"],
    ...["--idempotency-key", "k1", "--wait"],
  ],
  "topics publishes": ["news", "--limit", "2"],
  "topics cancel": ["news", ID],
  "mailbox list": ["--to", "a@b.c", "--from", "m@b.c", "--search", "s", "--since", "1h"],
  "mailbox get": [ID],
  "mailbox wait": ["--to", "a@b.c", "--from", "m@b.c", "--subject", "hi", "--since", "1h"],
  "mailbox clear": ["--to", "a@b.c"],
  "mailbox read": [ID, "--unread"],
  "mailbox rm": [ID],
  "mailbox raw": [ID],
  "mailbox check": [ID, "--links"],
  "mailbox release": [ID, "--to", "a@b.c", "--provider", ID],
  "mailbox chaos": ["--bounce", "0.1", "--defer", "0.2", "--refuse", "0", "--delay", "5"],
  "mailbox attachments": [ID, "0"],
  listen: ["--forward-to", "localhost:1", "--event", "email.*", "--limit", "1"],
  "events tail": ["--since", "1h", "--event", "email.*", "--limit", "1"],
  "logs list": [
    ...["--status", "4xx", "--path", "/v1/emails", "--request-id", "req_1", "--key", ID],
    ...["--limit", "2"],
  ],
  "logs tail": ["--status", "200", "--limit", "1"],
  "events list": ["--after", "evt_1", "--event", "email.*", "--limit", "2"],
  "domains add": [
    ...["acme.test", "--receiving", "--tracking", "links", "--return-path", "b"],
    ...["--selector", "s1", "--idempotency-key", "k1"],
  ],
  "domains list": ["--status", "pending", "--search", "acme", "--limit", "2"],
  "domains get": ["acme.test"],
  "domains check": [ID, "--watch"],
  "domains doctor": ["acme.test"],
  "domains update": [
    ...["acme.test", "--receiving", "off", "--tracking", "none", "--return-path", "b"],
  ],
  "domains records": [ID, "--format", "bind"],
  "domains rotate-dkim": [ID, "--selector", "s2"],
  "domains delete": ["acme.test"],
  "queue domains": [],
  "queue instance": [],
  "queue pause": ["--domain", "b.c"],
  "queue resume": ["email"],
  "providers set": [
    ...["smtp", "--name", "main", "--priority", "5", "--host", "smtp.b.c", "--port", "587"],
    ...["--username", "u", "--secret-stdin", "--tls", "starttls", "--max-per-second", "5"],
    ...["--spf", "include:spf.b.c"],
  ],
  "providers list": ["--kind", "email_provider", "--limit", "2"],
  "providers get": [ID],
  "providers update": [
    ...[ID, "--priority", "5", "--enabled", "on", "--max-per-second", "5"],
    ...["--host", "relay.b.c", "--secret-stdin"],
  ],
  "providers test": [ID, "--to", "a@b.c"],
  "providers delete": [ID],
  "events get": ["evt_1"],
  "events types": ["--category", "email"],
  "webhooks create": ["https://example.com/", "--event", "email.*", "--header", "X-A: b"],
  "webhooks list": ["--status", "active", "--limit", "2"],
  "webhooks get": [ID],
  "webhooks update": [ID, "--event", "sms.*", "--enabled", "on"],
  "webhooks delete": [ID],
  "webhooks enable": [ID, "--replay"],
  "webhooks disable": [ID],
  "webhooks pause": [ID],
  "webhooks rotate": [ID, "--now"],
  "webhooks test": [ID, "--event", "email.sent"],
  "webhooks deliveries": [
    ...[ID, "--status", "failed", "--event", "email.sent", "--event-id", "evt_1"],
    ...["--since", "1d", "--limit", "2"],
  ],
  "webhooks retry": [ID, ID],
  "webhooks replay": [ID, "--since", "7d", "--event", "email.*", "--status", "all"],
  "webhooks stats": [ID, "--window", "7d"],
  trigger: ["email.sent", "--override", "subject=Hi"],
  "queue list": [],
  "jobs get": [ID, "--wait"],
  "jobs cancel": [ID],
  routes: [],
  "applications create": [
    ...["--name", "Shop", "--slug", "shop", "--type", "web", "--session-minutes", "30"],
    ...["--refresh-days", "7", "--origin", "https://a.example"],
    ...["--redirect-url", "https://a.example/in"],
  ],
  "applications list": ["--limit", "2"],
  "applications mails": [],
  "applications get": [ID],
  "applications update": [ID, "--logo-url", "https://a.example/logo.png"],
  "applications rm": [ID],
  "applications rotate-secret": [ID, "--overlap", "2"],
  "applications environments list": [ID],
  "applications environments get": [ID, "live"],
  "applications environments set": [ID, "live", "mfa.policy=required"],
  "applications keys list": [ID],
  "applications keys create": [ID, "--environment", "live", "--name", "Website"],
  "applications keys rm": [ID, ID, "--force", "on"],
  "applications gaming list": [ID],
  "applications gaming set": [
    ...[ID, "play-games", "--environment", "test", "--client-id", "1-a"],
    ...["--client-secret", "quiet-river"],
  ],
  "applications gaming rm": [ID, "game-center", "--environment", "test"],
  "applications oauth list": [ID],
  "applications oauth set": [
    ...[ID, "oidc-work", "--environment", "test", "--client-id", "c", "--scope", "email"],
    ...["--client-secret", "quiet-river", "--issuer", "https://b.c", "--disabled"],
  ],
  "applications oauth rm": [ID, "google", "--environment", "test"],
  "keys create": ["--name", "ci", "--scope", "email:send", "--ip", "127.0.0.1"],
  "keys list": ["--status", "active", "--limit", "2"],
  "keys get": [ID],
  "keys revoke": [ID],
  "keys update": [ID, "--name", "cd", "--scope", "email:send", "--expires", "90d"],
  "keys rotate": [ID, "--overlap", "2"],
  "keys allowlist": [ID, "192.0.2.7", "2001:db8::/32"],
  "keys doctor": [],
  login: ["--email", "ann@mailbox.test", "--password-stdin", "--code", "123456"],
  logout: [],
  whoami: [],
  setup: ["--setup-token", "belfry_setup_1", "--email", "ann@mailbox.test", "--password-stdin"],
  signup: [
    ...["--email", "kim@mailbox.test", "--name", "Kim", "--password-stdin"],
    ...["--invitation", TOKEN],
  ],
  "password forgot": ["ann@mailbox.test"],
  "password reset": ["belfry_reset_1", "--password-stdin"],
  "me get": [],
  "me update": ["--name", "Ann", "--locale", "de-AT", "--timezone", "Europe/Vienna"],
  "me password": ["--password-stdin"],
  "me delete": ["--password-stdin"],
  "me approve": ["BCDF-GHJK"],
  "me mfa enroll": [],
  "me mfa verify": ["123456"],
  "me mfa disable": ["123456"],
  "me sessions list": ["--limit", "2"],
  "me sessions revoke": [ID],
  "accounts list": ["--limit", "2"],
  "accounts create": ["--name", "Acme", "--slug", "acme"],
  "accounts get": [ACCOUNT],
  "accounts update": [
    ...[ACCOUNT, "--name", "Acme", "--require-mfa", "on"],
    ...["--track-opens", "off", "--track-clicks", "on"],
  ],
  "accounts delete": [ACCOUNT],
  "accounts restore": [ACCOUNT],
  "accounts use": [ACCOUNT],
  "accounts transfer": [PERSON],
  "accounts plan": [],
  "accounts freeze": [ID, "--reason", "phishing"],
  "accounts unfreeze": [ID, "--reason", "cleaned"],
  "reputation show": [],
  "reputation release": ["--tag", "news"],
  "accounts resources": [],
  "accounts breakdown": ["--period", "2026-11"],
  "projects list": ["--limit", "2"],
  "projects create": ["--name", "Shop", "--slug", "shop"],
  "projects get": [ID],
  "projects update": [ID, "--name", "Shop", "--slug", "shop"],
  "projects delete": [ID],
  "projects restore": [ID],
  "projects use": [ID],
  "projects members": [ID, "--limit", "2"],
  "projects add-member": [ID, "--email", "kim@mailbox.test", "--role", "viewer"],
  "projects set-role": [ID, PERSON, "developer"],
  "projects remove-member": [ID, PERSON],
  "members list": ["--limit", "2"],
  "members invite": ["kim@mailbox.test", "--role", "admin", "--grant", `${ID}=developer`],
  "members set-role": [PERSON, "admin"],
  "members remove": [PERSON],
  "invitations list": ["--status", "pending", "--limit", "2"],
  "invitations resend": [ID],
  "invitations revoke": [ID],
  "invitations show": [TOKEN],
  "invitations accept": [TOKEN, "--name", "Kim", "--password-stdin"],
  usage: ["--period", "2026-11", "--project", ID],
  "usage mine": [],
  "usage reconcile": ["--period", "2026-11"],
  audit: [
    ...["--actor", PERSON, "--action", "api_key.created", "--target", "api_key"],
    ...["--since", "1d", "--until", "1m", "--limit", "2"],
  ],
  "settings get": ["sandbox"],
  "settings set": ["sandbox=true", "default_from=me@mailbox.test"],
}

/** The same commands with words that lead them to another route. */
export const further: [string, string[]][] = [
  ["devices rm", ["--user-id", "user-42"]],
  ["topics leave", ["news", "user-1", ID]],
  ["topics publishes", ["news", ID]],
  ["inbound attachments", [ID]],
  ["mailbox attachments", [ID]],
  ["mailbox chaos", []],
  ["mailbox chaos", ["--off"]],
  ["mailbox attachments", [ID, "0", "--save-as", "-"]],
  ["inbound attachments", [ID, "0", "--save-as", "-"]],
  ["subscribers get", ["user-42", "--external"]],
  ["subscribers rm", ["user-42", "--external"]],
  ["webhooks deliveries", [ID, ID]],
  ["webhooks retry", [ID, "--all", "--since", "1d"]],
]

/** These are for who has no credential yet, and carry none. */
export const anonymous = [
  ...["status", "routes", "login", "setup", "signup", "password forgot", "password reset"],
  ...["invitations show", "invitations accept", "push ack"],
]

/** These carry the token of an end user, which stdin has. */
export const of_users = ["users passkeys"]

/** These are about a sign-in, and nothing to a key. */
export const personal = ["logout", "whoami", "accounts use", "projects use"]

/** A server that answers all of them. */
export function everything(): FakeApi {
  const api = new FakeApi()
  api.answer("GET /healthz", { body: { status: "ok", version: "1", uptime_seconds: 1 } })
  api.answer("GET /readyz", { body: { status: "ok", checks: {} } })
  api.answer("GET /v1/openapi.json", { body: { paths: {} } })
  answerJobs(api)
  answerQueues(api)
  answerReputation(api)
  answerAuthoring(api)
  answerMail(api)
  answerTexts(api)
  answerPushes(api)
  answerInbound(api)
  answerPreferences(api)
  answerCategories(api)
  answerSubscribers(api)
  answerSuppressions(api)
  answerSubscriberData(api)
  answerUsers(api)
  answerTopics(api)
  answerInbox(api)
  answerHooks(api)
  answerKeys(api)
  answerApplications(api)
  answerProviders(api)
  answerDomains(api)
  answerAccounts(api)
  answerProjects(api)
  answerPeople(api)
  answerMe(api)
  return api
}

function answerAuthoring(api: FakeApi): void {
  const quotas = { draft_template: 25 }
  const plan = { enabled: true, plan: "pro", required_plan: "starter", gateway_configured: true }
  api.data("GET /v1/ai/entitlement", { project_id: ID, ...plan, quotas, used: quotas })
  const spending = { spend_usd: 1, budget_usd: null, remaining_usd: null, projected_usd: 2 }
  const period = { start: AT, end: AT }
  api.data("GET /v1/ai/usage", { period, ...spending, by_action: [], by_tier: [] })
  const metadata = { source: "rules", quota: { used: 1, limit: null } }
  const notes = { deliverability_risks: [], frequency_conflicts: [], audience_warnings: [] }
  const advice = { summary: "s", recommended_action: "send" }
  const advisory = { ...advice, ...notes, send_time_suggestions: [], content_notes: [] }
  const template = { name: "t", channel: "email", subject: "s", html: "h", text: null }
  api.data("POST /v1/ai/subjects/suggest", { suggestions: [], metadata })
  answerFrames(api, "templates/draft", { template, metadata })
  answerFrames(api, "templates/rewrite", { block: { content: "c" }, metadata })
  answerFrames(api, "workflows/generate", { workflow: { key: "w", steps: [] }, metadata })
  answerFrames(api, "broadcasts/analyze", { advisory, metadata })
}

function answerFrames(api: FakeApi, path: string, complete: object): void {
  const data = JSON.stringify(complete)
  const body = `event: complete\ndata: ${data}\n\nevent: done\ndata: {}\n\n`
  const headers = { "content-type": "text/event-stream" }
  api.answer(`POST /v1/ai/${path}`, { body, headers })
}

function answerApplications(api: FakeApi): void {
  const all = "/v1/auth/applications"
  const one = `${all}/${ID}`
  const shop = {
    ...{ id: ID, name: "Shop", slug: "shop", type: "web", logo_url: null, created_at: AT },
    public_keys: { live: "svca_live_pub_1", test: "svca_test_pub_1" },
    environments: [{ name: "live", status: "active", users: 1 }],
  }
  api.data(`POST ${all}`, { ...shop, secret_key: "svca_sec_1" })
  api.data(`GET ${all}`, [shop])
  api.data(`GET ${one}`, shop)
  api.data(`PATCH ${one}`, shop)
  api.data(`DELETE ${one}`, { id: ID, deleted: true })
  const rotated = { secret_key: "svca_sec_2", previous_expires_at: AT }
  api.data(`POST ${one}/rotate-secret`, rotated)
  const live = { name: "live", status: "active", mfa: { policy: "required" } }
  api.data(`GET ${one}/environments`, [live])
  api.data(`GET ${one}/environments/live`, live)
  api.data(`PATCH ${one}/environments/live`, live)
  const platform = { provider: "play-games", environment: "test", enabled: true, bundle_ids: [] }
  api.data(`GET ${one}/gaming-providers`, [{ ...platform, client_id: "1-a", updated_at: AT }])
  api.data(`PUT ${one}/gaming-providers/play-games`, platform)
  api.data(`DELETE ${one}/gaming-providers/game-center`, { id: ID, deleted: true })
  const elsewhere = { provider: "google", environment: "live", enabled: true, callback_url: "u" }
  api.data(`GET ${one}/oauth-providers`, [{ ...elsewhere, client_id: "c", updated_at: AT }])
  api.data(`PUT ${one}/oauth-providers/oidc-work`, elsewhere)
  api.data(`DELETE ${one}/oauth-providers/google`, { id: ID, deleted: true })
  const key = { id: ID, environment: "live", name: "Website", key: "svca_live_pub_1" }
  api.data(`GET ${one}/keys`, [{ ...key, last_used_at: null, created_at: AT }])
  api.data(`POST ${one}/keys`, key)
  api.data(`DELETE ${one}/keys/${ID}`, { id: ID, deleted: true })
}

function answerTexts(api: FakeApi): void {
  const sms = {
    ...{ id: ID, to: "+14155550100", from: null, body: "hi", encoding: "gsm7", segments: 1 },
    ...{ status: "delivered", status_reason: null, direction: "outbound", tags: [] },
    ...{ error: null, price: null, timeline: [], scheduled_at: null, created_at: AT },
  }
  api.data("POST /v1/sms", { ...sms, status: "queued" })
  api.data("POST /v1/sms/batch", { total: 1, succeeded: 1, failed: 0, results: [] })
  api.data("GET /v1/sms", [sms])
  api.data(`GET /v1/sms/${ID}`, sms)
  api.data(`POST /v1/sms/${ID}/cancel`, { ...sms, status: "cancelled" })
  const told = { verdict: "delivered", summary: "The text was delivered.", steps: [] }
  api.data(`GET /v1/sms/${ID}/explain`, { sms_id: ID, ...told })
  const inspection = { encoding: "gsm7", segments: 1, characters: 2, per_segment: 160 }
  api.data("POST /v1/sms/segments", { ...inspection, offending: [], gsm7_suggestion: null })
  const none = { by_status: {}, by_provider: {} }
  api.data("GET /v1/sms/stats", { period: "2026-11", total: 0, segments: 0, ...none })
}

function answerUsers(api: FakeApi): void {
  const user = {
    ...{ id: ID, email: "a@b.c", name: null, phone_number: null, status: "active" },
    ...{ mfa_methods: [], identities: [] },
  }
  const path = `/v1/auth/users/${ID}`
  api.data("GET /v1/auth/users", [user])
  api.data("GET /v1/auth/email-templates", [
    { type: "magic_link", subject: "Sign in", variables: [{ key: "link", required: true }] },
  ])
  for (const made of ["", "/invite"]) api.data(`POST /v1/auth/users${made}`, user)
  api.data("POST /v1/auth/users/import", { imported: 1, failed: [] })
  for (const call of ["GET", "PATCH"]) api.data(`${call} ${path}`, user)
  for (const verb of ["suspend", "activate"]) api.data(`POST ${path}/${verb}`, user)
  api.data(`DELETE ${path}`, { id: ID, deleted: true })
  api.data(`POST ${path}/password`, { success: true })
  api.data(`POST ${path}/impersonate`, { access_token: "t", expires_in: 60, session: {} })
  api.data(`GET ${path}/sessions`, [])
  api.data(`DELETE ${path}/sessions`, { revoked: 1 })
  api.data("POST /v1/auth/mfa/enroll", { method: "sms", sent: true, backup_codes: [] })
  api.data("POST /v1/auth/mfa/verify-enrollment", { enabled: true, method: "sms" })
  api.data(`DELETE ${path}/mfa`, user)
  api.data("GET /v1/auth/passkeys", [{ id: ID, name: "Phone", backed_up: true }])
  answerOrganizations(api)
}

function answerOrganizations(api: FakeApi): void {
  const path = "/v1/auth/organizations"
  const organization = { id: ID, name: "Acme", slug: "acme", mfa_required: false, role: "owner" }
  const member = { id: ID, end_user_id: ID, role: "member", permissions: [], email: "a@b.c" }
  api.data(`GET ${path}`, [organization])
  api.data(`POST ${path}`, organization)
  for (const call of ["GET", "PATCH"]) api.data(`${call} ${path}/${ID}`, organization)
  api.data(`GET ${path}/${ID}/members`, [member])
  api.data(`POST ${path}/${ID}/members`, member)
  api.data(`PATCH ${path}/${ID}/members/${ID}`, member)
  const invitation = { id: ID, email: "a@b.c", role: "member", status: "pending", expires_at: AT }
  api.data(`GET ${path}/${ID}/invitations`, [invitation])
  api.data(`POST ${path}/${ID}/invitations`, invitation)
  for (const one of ["", `/members/${ID}`, `/invitations/${ID}`])
    api.data(`DELETE ${path}/${ID}${one}`, { id: ID, deleted: true })
}

function answerPushes(api: FakeApi): void {
  const push = {
    ...{ id: ID, user_id: "u", device_id: "phone-1", platform: "ios", provider: "apns" },
    ...{ title: "hi", body: null, data: {}, tags: [], action_buttons: [], events: [] },
    ...{ status: "delivered", status_reason: null, scheduled_at: null, created_at: AT },
  }
  api.data("POST /v1/push", { id: ID, status: "queued", devices: 1, messages: [push] })
  api.data("POST /v1/push/batch", { total: 1, succeeded: 1, failed: 0, results: [] })
  api.data("GET /v1/push", [push])
  api.data(`GET /v1/push/${ID}`, push)
  api.data(`POST /v1/push/${ID}/cancel`, { ...push, status: "cancelled" })
  api.data(`POST /v1/push/${ID}/ack`, { recorded: true })
  api.data(`GET /v1/push/${ID}/explain`, { push_id: ID, verdict: "", summary: "", steps: [] })
  const none = { by_status: {}, by_platform: {}, by_provider: {}, by_day: [], errors: [] }
  api.data("GET /v1/push/stats", { period: "2026-11", total: 0, opened: 0, ...none })
  api.data("GET /v1/push/webpush/public-key", { public_key: "k" })
  api.data("GET /v1/push/config", { apns: null, fcm: null, webpush: null })
  api.data("PUT /v1/push/config/webpush", { id: ID, provider: "webpush" })
  api.data("DELETE /v1/push/config/apns", { id: ID, deleted: true })
  api.data("POST /v1/push/config/apns/test", { ok: true, detail: "It works." })
  const device = { id: ID, device_id: "phone-1", user_id: "u", platform: "ios", provider: "apns" }
  api.data("POST /v1/devices", device)
  api.data("GET /v1/devices", [{ ...device, status: "active", last_active_at: AT }])
  api.data("POST /v1/devices/batch", { total: 1, succeeded: 1, failed: 0, results: [] })
  api.data("GET /v1/devices/phone-1", device)
  api.data("PATCH /v1/devices/phone-1", device)
  api.data("POST /v1/devices/phone-1/unlink", { ...device, user_id: null })
  api.data("DELETE /v1/devices/phone-1", { id: ID, deleted: true })
  api.data("DELETE /v1/devices/user/user-42", { user_id: "user-42", deleted: 2 })
  api.data("GET /v1/devices/stats", { total: 1, active: 1, expired: 0 })
}

function answerMail(api: FakeApi): void {
  const mail = { id: ID, from: "a@b.c", to: "d@e.f", subject: "Hi", text: "", attachments: [] }
  api.data("POST /v1/emails", { id: ID, status: "queued" })
  const rendered = { subject: "s", html: null, text: "t", size_bytes: 1 }
  api.data("POST /v1/emails/preflight", {
    ok: true,
    errors: [],
    warnings: [],
    rendered,
    checks: [],
  })
  api.data("POST /v1/emails/batch", { id: ID, total: 1, succeeded: 1, failed: 0, results: [] })
  api.data("GET /v1/emails", [email()])
  api.data(`GET /v1/emails/${ID}`, email())
  api.data(`GET /v1/emails/${ID}/events`, { email_id: ID, status: "delivered", events: [] })
  api.data(`GET /v1/emails/${ID}/attempts`, [])
  const hits = { total: 0, unique: 0, human: 0, machine: 0, first_at: null, last_at: null }
  api.data(`GET /v1/emails/${ID}/tracking`, {
    ...{ email_id: ID, track_opens: true, track_clicks: false },
    ...{ opens: hits, clicks: hits, links: [], recent: [] },
  })
  api.answer(`GET /v1/emails/${ID}/raw`, { body: "Subject: Hi" })
  api.answer(`GET /v1/emails/${ID}/attachments/${ID}`, { body: "bytes" })
  api.data(`GET /v1/emails/${ID}/content`, { subject: "Hi", html: null, text: "", headers: {} })
  api.data(`GET /v1/emails/${ID}/explain`, {
    email_id: ID,
    verdict: "delivered",
    summary: "The email was delivered.",
    steps: [],
  })
  api.data(`POST /v1/emails/${ID}/cancel`, email())
  api.data(`POST /v1/emails/${ID}/resend`, { id: ID, status: "queued" })
  api.data(`PATCH /v1/emails/${ID}`, email())
  const scheduled = { id: ID, channel: "email", status: "scheduled", to: "a@b.c" }
  api.data("GET /v1/scheduled", [scheduled])
  api.data(`GET /v1/scheduled/${ID}`, scheduled)
  api.data(`DELETE /v1/scheduled/${ID}`, { ...scheduled, status: "cancelled", deleted: true })
  const template = {
    ...{ id: ID, name: "receipt", status: "published", version: 1, published_version: 1 },
    ...{ channels: {}, locales: [], detected_variables: [], tags: [], subject: "s", html: "h" },
    ...{ variables: [], description: null, layout_id: null, locale: null, text: null },
  }
  api.data("POST /v1/templates", template)
  api.data("POST /v1/templates/render", { subject: "s", html: "h", text: "h" })
  api.data(`PUT /v1/templates/${ID}`, template)
  api.data("GET /v1/templates", [template])
  api.data(`DELETE /v1/templates/${ID}`, { id: ID, deleted: true })
  for (const method of ["GET", "PATCH"]) api.data(`${method} /v1/templates/${ID}`, template)
  for (const verb of ["publish", "archive", "duplicate", "rollback"]) {
    api.data(`POST /v1/templates/${ID}/${verb}`, template)
  }
  api.data(`GET /v1/templates/${ID}/versions`, [
    { version: 1, published: true, created_by: { type: "key", id: ID }, note: null },
  ])
  api.data(`GET /v1/templates/${ID}/versions/1`, template)
  const preview = { channel: "email", missing_variables: [], unknown_variables: [], text: "x" }
  api.data(`POST /v1/templates/${ID}/render`, preview)
  api.data("POST /v1/templates/render", preview)
  api.data(`POST /v1/templates/${ID}/test-send`, { id: ID, status: "queued" })
  api.data("GET /v1/mailbox", [mail])
  api.data(`GET /v1/mailbox/${ID}`, mail)
  api.data("DELETE /v1/mailbox", { deleted: 1 })
  const chaos = { bounce_rate: 0.1, defer_rate: 0.2, refuse_rate: 0, delay_ms: 5 }
  const size = { bytes: 10, html_bytes: 5, clipped: false }
  api.data(`POST /v1/mailbox/${ID}/check`, { html: [], links: [], content: [], size })
  api.data(`POST /v1/mailbox/${ID}/release`, { id: ID, status: "queued" })
  api.data("GET /v1/mailbox/chaos", chaos)
  api.data("PUT /v1/mailbox/chaos", chaos)
  api.data(`PATCH /v1/mailbox/${ID}`, { ...mail, read: false })
  api.data(`DELETE /v1/mailbox/${ID}`, { id: ID, deleted: true })
  api.answer(`GET /v1/mailbox/${ID}/raw`, { body: "Subject: Hi" })
  api.answer(`GET /v1/mailbox/${ID}/attachments/0`, { body: "abc" })
  api.data("GET /v1/events", [])
  answerFollowers(api)
}

function answerInbound(api: FakeApi): void {
  const one = `/v1/inbound-emails/${ID}`
  const file = { id: "0", filename: "a.txt", content_type: "text/plain", size: 1 }
  const mail = received({ attachments: [file] })
  api.data("GET /v1/inbound-emails", [mail])
  api.data("GET /v1/inbound-emails/wait", { ...mail, extracted: "493027" })
  api.data(`GET ${one}`, mail)
  api.data(`DELETE ${one}`, { id: ID, deleted: true })
  api.answer(`GET ${one}/raw`, { body: "Subject: Hi" })
  api.data(`GET ${one}/attachments/0`, { ...file, url: "http://b.c/v1/files/v1.a.b" })
  api.answer("GET /v1/files/v1.a.b", { body: "x" })
  for (const verb of ["reply", "forward"]) {
    api.data(`POST ${one}/${verb}`, { id: ID, status: "queued" })
  }
  api.data(`POST ${one}/redeliver`, { deliveries: [] })
  const route = { id: ID, match: { to: "*@b.c" }, action: "drop", target: null, priority: 5 }
  api.data("GET /v1/inbound-routes", [route])
  api.data("POST /v1/inbound-routes", route)
  api.data(`GET /v1/inbound-routes/${ID}`, route)
  api.data(`PATCH /v1/inbound-routes/${ID}`, route)
  api.data(`DELETE /v1/inbound-routes/${ID}`, { id: ID, deleted: true })
}

function answerPreferences(api: FakeApi): void {
  const channel = { enabled: true, categories: { news: false } }
  const chosen = {
    ...{ email: channel, push: channel, sms: channel, in_app: channel },
    ...{ topics: { releases: { email: true } }, workflows: { welcome: false }, quiet_hours: null },
  }
  const one = `/v1/subscribers/${ID}`
  for (const path of [`GET ${one}`, `POST ${one}`, `PUT ${one}`])
    api.data(`${path}/preferences`, chosen)
  api.data("GET /v1/subscribers/preferences/default", chosen)
  api.data("PUT /v1/subscribers/preferences/default", chosen)
  const reach = { allowed: false, reason: "preference", next_allowed_at: null }
  api.data(`GET ${one}/reachability`, { email: reach, push: reach, sms: reach, in_app: reach })
}

function answerCategories(api: FakeApi): void {
  const category = { id: ID, slug: "news", name: "News", critical: false, default: "on" }
  const found = { ...category, visibility: "public", channels: ["email", "sms"] }
  const path = "/v1/subscribers/categories"
  api.data(`GET ${path}`, [found])
  api.data(`POST ${path}`, found)
  api.data(`GET ${path}/${ID}`, found)
  api.data(`PATCH ${path}/${ID}`, found)
  api.data(`DELETE ${path}/${ID}`, { id: ID, deleted: true })
}

function answerSubscribers(api: FakeApi): void {
  const found = { id: ID, external_id: "user-42", email: "a@b.c", tags: [], status: "active" }
  api.data("GET /v1/subscribers", [found])
  api.data("POST /v1/subscribers", found)
  api.data("POST /v1/subscribers/bulk", { created: 1, updated: 0, skipped: 0, failed: [] })
  for (const path of ["user-42", "external/user-42"]) {
    for (const method of ["GET", "PUT", "PATCH"])
      api.data(`${method} /v1/subscribers/${path}`, found)
    api.data(`DELETE /v1/subscribers/${path}`, { id: ID, deleted: true })
  }
}

function answerSubscriberData(api: FakeApi): void {
  const one = `/v1/subscribers/${ID}`
  const about = { id: ID, subscriber_id: ID, channel: "email", category: "news", created_at: "" }
  const consent = { ...about, scope: null, action: "granted", number: 1, prev_hash: null, hash: "" }
  api.data(`GET ${one}`, { id: ID, project_id: ID, external_id: "user-42" })
  api.data(`GET ${one}/unsubscribes`, [about])
  api.data(`POST ${one}/unsubscribe`, about)
  api.data(`POST ${one}/resubscribe`, { removed: 1 })
  api.data(`GET ${one}/consents`, [consent])
  api.data(`POST ${one}/consents`, consent)
  api.data(`POST ${one}/merge`, { id: ID, external_id: "user-42" })
  api.answer(`GET ${one}/export`, { body: "{}" })
  api.data(`POST ${one}/erase`, { erased: true, receipt_id: ID, counts: {}, remains: [] })
}

function answerSuppressions(api: FakeApi): void {
  const scope = { type: "project", key: null }
  const found = { id: ID, channel: "email", address: "a@b.c", reason: "bounce", scope }
  api.data("GET /v1/suppressions", [found])
  api.data("POST /v1/suppressions", found)
  api.data("POST /v1/suppressions/bulk", { added: 1, existing: 0, failed: [] })
  api.data("POST /v1/suppressions/bulk-remove", { removed: 1, not_found: [] })
  api.data("GET /v1/suppressions/check", { address: "a@b.c", suppressed: false, suppression: null })
  api.answer("GET /v1/suppressions/export", { body: "id,address\r\n" })
  api.data(`GET /v1/suppressions/${ID}`, found)
  api.data(`DELETE /v1/suppressions/${ID}`, { id: ID, deleted: true })
}

function answerInbox(api: FakeApi): void {
  const states = { seen_at: null, read_at: null, archived_at: null, snoozed_until: null }
  const message = {
    ...{ id: ID, seq: 1, subscriber_id: ID, title: "t", body: null, actions: [], data: {} },
    ...{ ...states, tags: [], category: null, priority: "normal", created_at: AT },
  }
  const sent = { id: ID, status: "created", messages: [{ id: ID, subscriber_id: ID }], skipped: 0 }
  api.data("POST /v1/inbox", sent)
  api.data("GET /v1/inbox", [message])
  for (const method of ["GET", "PATCH"]) api.data(`${method} /v1/inbox/${ID}`, message)
  api.data(`DELETE /v1/inbox/${ID}`, { id: ID, deleted: true })
  api.data("GET /v1/inbox/stats", { period: {}, created: 1, seen: 1, read: 1, archived: 0 })
  api.data("POST /v1/subscriber-inbox/token", { token: "t", subscriber_id: ID, expires_in: 60 })
  const counts = { unread: 1, unseen: 1, total: 1 }
  const ready = { type: "ready", subscriber_id: ID, last_seq: 1, counts }
  api.socket("/v1/subscriber-inbox/ws", ready, { type: "message.created", seq: 2, message })
}

function answerTopics(api: FakeApi): void {
  const topic = { id: ID, key: "news", name: "News", default: "on", subscriber_count: 2 }
  const member = { subscriber_id: ID, external_id: "user-1", email: null }
  api.data("GET /v1/topics", [topic])
  api.data("POST /v1/topics", topic)
  for (const method of ["GET", "PATCH"]) api.data(`${method} /v1/topics/news`, topic)
  api.data("DELETE /v1/topics/news", { id: ID, deleted: true })
  const members = "/v1/topics/news/subscribers"
  api.data(`GET ${members}`, [member])
  api.data("GET /v1/subscribers/user-1/topics", [{ key: "news", name: "News" }])
  api.data(`POST ${members}`, { added: 2, already: 0, not_found: [] })
  api.data(`DELETE ${members}`, { removed: 2, not_found: [] })
  api.data(`DELETE ${members}/user-1`, { id: ID, deleted: true })
  const skipped = { no_address: 0, preference: 1, suppressed: 0, frequency_cap: 0, quota: 0 }
  const publish = {
    ...{ id: ID, topic_key: "news", status: "completed", status_reason: null, audience: 3 },
    channels: { email: { planned: 3, sent: 2, skipped, failed: 0 } },
    completed_at: new Date().toISOString(),
  }
  api.data("POST /v1/topics/news/publish", publish)
  api.data("GET /v1/topics/news/publishes", [publish])
  api.data(`GET /v1/topics/news/publishes/${ID}`, publish)
  api.data(`POST /v1/topics/news/publishes/${ID}/cancel`, { ...publish, status: "cancelled" })
}

function answerFollowers(api: FakeApi): void {
  const created_at = new Date().toISOString()
  const event = { id: "evt_1", type: "email.sent", api_version: "1", created_at, data: {} }
  const secret = `whsec_${btoa("x".repeat(32))}`
  const ready = { type: "ready", secret, after: null }
  const headers = { "webhook-id": event.id, "content-type": "application/json" }
  const delivery = { type: "delivery", delivery_id: ID, headers, body: JSON.stringify(event) }
  api.socket("/v1/events/stream", ready, { type: "event", event }, delivery)
  const request = { request_id: "req_1", method: "GET", path: "/v1/emails", status: 200 }
  const rest = { duration_ms: 1, key_id: ID, ip: "127.0.0.1", error_code: null, created_at }
  api.data("GET /v1/request-log", [{ ...request, ...rest }])
}

function answerHooks(api: FakeApi): void {
  const one = `/v1/webhooks/${ID}`
  const policy = { max_attempts: 6, intervals: [60] }
  const states = { status: "active", consecutive_failures: 0, held_count: 0 }
  const hook = { id: ID, url: "https://a.b/", events: ["*"], headers: {}, ...states }
  const webhook = { ...hook, retry_policy: policy }
  const delivery = { id: ID, event_id: "evt_1", event_type: "email.sent", status: "failed" }
  const job = { id: ID, type: "webhook.replay", status: "queued", progress: { total: 1 } }
  api.data("POST /v1/webhooks", { ...webhook, secret: "whsec_new" })
  api.data("GET /v1/webhooks", [webhook])
  api.data(`GET ${one}`, webhook)
  api.data(`PATCH ${one}`, webhook)
  api.data(`DELETE ${one}`, { id: ID, deleted: true })
  for (const verb of ["enable", "disable", "pause"]) api.data(`POST ${one}/${verb}`, webhook)
  const rotated = { secret: "whsec_new", previous_secret_expires_at: null }
  api.data(`POST ${one}/rotate-secret`, rotated)
  api.data(`POST ${one}/test`, { delivered: true, delivery_id: ID, response_status: 200 })
  api.data(`GET ${one}/deliveries`, [delivery])
  api.data(`GET ${one}/deliveries/${ID}`, delivery)
  api.data(`POST ${one}/deliveries/${ID}/retry`, delivery)
  api.data(`POST ${one}/deliveries/bulk-retry`, job)
  api.data(`POST ${one}/replay`, job)
  api.data(`GET ${one}/stats`, { attempts: 1, by_status: { "200": 1 } })
  const event = { id: "evt_1", type: "email.sent", api_version: "1", data: {} }
  api.data("POST /v1/events/trigger", event)
  api.data("GET /v1/events/evt_1", event)
  api.data("GET /v1/webhooks/events", [])
  api.data("GET /v1/queue", { by_state: [], by_domain: [] })
}

function answerJobs(api: FakeApi): void {
  const progress = { done: 1, total: 1, failed: 0 }
  const ended = { status: "completed", progress, completed_at: "2026-11-21T10:00:00.000Z" }
  api.data(`GET /v1/jobs/${ID}`, { id: ID, type: "webhook.replay", result: null, ...ended })
  api.data(`POST /v1/jobs/${ID}/cancel`, { id: ID, ...ended, status: "cancelled" })
}

function answerQueues(api: FakeApi): void {
  const queue = { queue: "email", depth: 2, oldest_seconds: 3, running: 1, failed_24h: 0 }
  const put_off = { domain: "b.c", waiting: 2, running: 0, paused_until: null, reason: null }
  api.data("GET /v1/queue", { by_state: [], by_domain: [put_off] })
  api.data("GET /v1/admin/queues", [{ ...queue, paused: false }])
  api.data("POST /v1/admin/queues/email%3Ab.c/pause", { ...queue, paused: true })
  api.data("POST /v1/admin/queues/email/resume", { ...queue, paused: false })
}

function answerReputation(api: FakeApi): void {
  const account = { id: ID, name: "Acme", sending_status: "frozen" }
  for (const verb of ["freeze", "unfreeze"]) {
    api.data(`POST /v1/admin/accounts/${ID}/${verb}`, account)
  }
  api.data("GET /v1/accounts/me/reputation", reputation())
  api.data("POST /v1/accounts/me/reputation/release", { released: 2 })
}

/** An account without mail, with the thresholds of a fresh instance. */
export function reputation(more: object = {}) {
  const rates = { bounce_rate: 0, complaint_rate: 0 }
  const steps = {
    throttled: { min_sent: 200, bounce_rate: 0.05, complaint_rate: 0.001 },
    frozen: { min_sent: 500, bounce_rate: 0.1, complaint_rate: 0.005 },
  }
  const left = { bounces_left: 200, complaints_left: 1 }
  return {
    ...{ status: "active", reason: null, rejected_share: 0, window_days: 7, sent: 0, ...rates },
    ...{ thresholds: steps, warning: null, held: [], by_domain: [], by_tag: [] },
    forecast: { status: null, expected_at: null, ...rates, ...left },
    ...more,
  }
}

function answerKeys(api: FakeApi): void {
  const own = { id: ID, name: "ci", prefix: "p", last4: "1234", scopes: [], status: "active" }
  const key = { ...own, ip_addresses: [] }
  api.data("POST /v1/api-keys", { ...key, key: "svc_live_new" })
  api.data("GET /v1/api-keys", [key])
  api.data(`GET /v1/api-keys/${ID}`, key)
  api.data(`DELETE /v1/api-keys/${ID}`, key)
  api.data(`PATCH /v1/api-keys/${ID}`, key)
  api.data(`POST /v1/api-keys/${ID}/rotate`, { ...key, key: "svc_live_new" })
  api.data(`PUT /v1/api-keys/${ID}/ip-whitelist`, key)
}

function answerDomains(api: FakeApi): void {
  const counts = { records_total: 4, records_verified: 4 }
  const domain = { id: ID, domain: "acme.test", status: "verified", dns_records: [], ...counts }
  api.data("POST /v1/domains", domain)
  api.data("GET /v1/domains", [domain])
  api.data(`GET /v1/domains/${ID}`, domain)
  api.data(`POST /v1/domains/${ID}/check`, domain)
  api.data(`POST /v1/domains/${ID}/rotate-dkim`, domain)
  api.data(`PATCH /v1/domains/${ID}`, domain)
  api.data(`DELETE /v1/domains/${ID}`, { id: ID, deleted: true })
  api.answer(`GET /v1/domains/${ID}/zonefile`, { body: "; zone" })
}

function answerProviders(api: FakeApi): void {
  const all = "/v1/providers/email_provider/config"
  const named = { id: ID, kind: "email_provider", provider: "smtp", name: "main" }
  const own = { ...named, status: "active", callback_url: null }
  api.data("GET /v1/providers", [own])
  api.data(`POST ${all}`, own)
  api.data(`GET ${all}/${ID}`, own)
  api.data(`PATCH ${all}/${ID}`, own)
  api.data(`DELETE ${all}/${ID}`, { id: ID, deleted: true })
  api.data(`POST ${all}/${ID}/test`, { ok: true, duration_ms: 3, detail: "It answers." })
}

function answerAccounts(api: FakeApi): void {
  const account = { id: ACCOUNT, name: "Acme", slug: "acme", plan: "free", settings: {} }
  api.data("GET /v1/accounts", [account])
  api.data("POST /v1/accounts", account)
  api.data("GET /v1/accounts/me", account)
  api.data("PATCH /v1/accounts/me", account)
  api.data("DELETE /v1/accounts/me", { id: ACCOUNT, deleted: true })
  api.data("POST /v1/accounts/me/restore", account)
  api.data("POST /v1/accounts/me/transfer", account)
  api.data("GET /v1/accounts/me/plan", { plan: "free", limits: {}, features: {}, usage: {} })
  api.data("GET /v1/accounts/me/resource-counts", { projects: { used: 1, limit: 3 } })
  api.data("GET /v1/accounts/me/project-breakdown", [])
  const month = { period: "2026-11", drift: {}, projects_touched: 0 }
  api.data("GET /v1/usage", { period: { start: "2026-11-01", end: "2026-12-01" } })
  api.data("GET /v1/usage/user-aggregate", { user_id: PERSON, accounts: [], totals: {}, over: [] })
  api.data("POST /v1/usage/reconcile", month)
  api.data("GET /v1/audit-log", [])
}

function answerProjects(api: FakeApi): void {
  const project = { id: ID, account_id: ACCOUNT, name: "Shop", slug: "shop", status: "active" }
  const member = { user_id: PERSON, email: "kim@mailbox.test", role: "viewer" }
  api.data("GET /v1/projects", [project])
  api.data("POST /v1/projects", project)
  api.data(`GET /v1/projects/${ID}`, project)
  api.data(`PATCH /v1/projects/${ID}`, project)
  api.data(`DELETE /v1/projects/${ID}`, { id: ID, deleted: true })
  api.data(`POST /v1/projects/${ID}/restore`, project)
  api.data(`GET /v1/projects/${ID}/members`, [member])
  api.data(`POST /v1/projects/${ID}/members`, member)
  api.data(`PATCH /v1/projects/${ID}/members/${PERSON}`, member)
  api.data(`DELETE /v1/projects/${ID}/members/${PERSON}`, { id: PERSON, deleted: true })
  api.data("GET /v1/settings", { sandbox: false })
  api.data("PATCH /v1/settings", { sandbox: true })
}

function answerPeople(api: FakeApi): void {
  const of_account = "/v1/accounts/me/members"
  const member = { user_id: PERSON, email: "kim@mailbox.test", role: "admin" }
  api.data(`GET ${of_account}`, [member])
  api.data(`PATCH ${of_account}/${PERSON}`, member)
  api.data(`DELETE ${of_account}/${PERSON}`, { id: PERSON, deleted: true })
  const asked = { id: ID, email: "kim@mailbox.test", role: "admin", status: "pending" }
  api.data(`POST ${of_account}/invite`, asked)
  api.data("GET /v1/accounts/me/invitations", [asked])
  api.data(`POST /v1/accounts/me/invitations/${ID}/resend`, asked)
  api.data(`DELETE /v1/accounts/me/invitations/${ID}`, { id: ID, deleted: true })
  const invited = { email: "kim@mailbox.test", account_name: "Acme", role: "admin" }
  api.data(`GET /v1/invitations/${TOKEN}`, { ...invited, user_exists: false })
  api.data(`POST /v1/invitations/${TOKEN}/accept`, session())
  const mfa_challenge = { token: "belfry_mfa_1", methods: ["totp"], expires_at: "" }
  api.data("POST /v1/session", { mfa_required: true, mfa_challenge })
  api.data("POST /v1/session/mfa", session())
  api.data("GET /v1/session", { ...session(), session: { id: ID } })
  api.data("DELETE /v1/session", { id: ID, deleted: true })
}

function answerMe(api: FakeApi): void {
  const me = "/v1/users/me"
  const user = { id: PERSON, email: "ann@mailbox.test", name: "Ann" }
  const made = { account: { id: ACCOUNT, name: "Main" }, project: { id: ID, name: "Default" } }
  const api_key = { id: ID, key: "svc_live_new" }
  api.data("GET /v1/setup", { required: true, version: "1" })
  api.data("POST /v1/setup", { session: session(), ...made, api_key })
  api.data("POST /v1/users", session())
  api.data("POST /v1/password/forgot", { success: true })
  api.data("POST /v1/password/reset", { success: true })
  api.data("POST /v1/session/device/approve", { approved: true })
  api.data(`GET ${me}`, user)
  api.data(`PATCH ${me}`, user)
  api.data(`DELETE ${me}`, { id: PERSON, deleted: true })
  api.data(`POST ${me}/password`, { success: true })
  const codes = { backup_codes: ["aaaaa-bbbbb"], qr_code: "data:", otpauth_url: "otpauth://x" }
  api.data(`POST ${me}/mfa/enroll`, { secret: "S", ...codes })
  api.data(`POST ${me}/mfa/verify`, { enabled: true })
  api.data(`POST ${me}/mfa/disable`, { enabled: false })
  api.data(`GET ${me}/sessions`, [{ id: ID, current: true, ip: null }])
  api.data(`DELETE ${me}/sessions/${ID}`, { id: ID, deleted: true })
}
