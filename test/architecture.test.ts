import { expect, test } from "bun:test"
import { basename, dirname } from "node:path/posix"
import { circle, type Edge, edges, functionsOf, reachable, show, sources } from "./harness/sources"

/** A file imports from its own level or from the levels above it. This list is the architecture. */
const levels = [
  ["lib", "client"],
  ["console", "component"], // run in browsers, and nothing of the server imports them
  ["core"],
  ["store"],
  ["jobs", "events", "plans", "audit-log", "request-log"],
  ["sign-in"],
  ["identity"],
  ["tenancy", "signing-keys"],
  ["http"],
  [
    "subscribers",
    "devices",
    "topics",
    "templates",
    "domains",
    "suppressions",
    "consents",
    "providers",
    "webhooks",
    "reputation",
  ],
  ["messages", "tracking"],
  ["emails", "push", "sms", "inbox", "queue"],
  ["smtp", "inbound", "fan-out"],
  ["broadcasts", "workflows", "auth", "ai", "operations", "pages", "mailbox"],
  ["routes"], // every routes.ts and *-routes.ts, of any folder: the shell around the features
  ["."], // app.ts, work.ts, channels.ts, server.ts, worker.ts: they know everyone
]

const MAX_LINES = 400
const MAX_FUNCTION_LINES = 70

/** Written by `bun run generate`: it grows with the years, and nobody reads it. */
const GENERATED = "src/store/migrations.ts"

/** The commands that work on the machine itself; all others are clients of the API. */
const LOCAL = /^cli\/local\//

const SERVER = /^src\/(?!client\/)/

/** Names that the architecture gives to a file of every feature, channel or provider. */
const SHARED_FILES =
  /\/(routes|tables|schemas|accept|channel|prepare)\.ts$|\/providers\/[\w-]+\.ts$/

const VAGUE = /(^|\/)(service|utils?|helpers?|common|manager|types|constants|index)\.tsx?$/

const src = sources.filter(({ path }) => path.startsWith("src/"))
const arrows = edges.filter(({ from, to }) => from.startsWith("src/") && to.startsWith("src/"))

const isRoutes = (path: string) => /(\/|-)routes\.ts$/.test(path)

function levelOf(path: string): number {
  const [, folder = "", rest] = path.split("/")
  const home = isRoutes(path) ? "routes" : rest === undefined ? "." : folder
  return levels.findIndex((level) => level.includes(home))
}

const paths = (files: { path: string }[]) => files.map(({ path }) => path)

test("every file of src has a known home", () => {
  expect(paths(src.filter(({ path }) => levelOf(path) < 0))).toEqual([])
})

test("imports only point up the list", () => {
  const wrong = arrows.filter(({ from, to }) => levelOf(to) > levelOf(from))
  expect(wrong.map(show)).toEqual([])
})

test("only app.ts and a parent's routes.ts import a routes.ts", () => {
  const mayMount = (from: string, to: string) =>
    from === "src/app.ts" || (isRoutes(from) && to.startsWith(`${dirname(from)}/`))
  const wrong = arrows.filter(({ from, to }) => isRoutes(to) && !mayMount(from, to))
  expect(wrong.map(show)).toEqual([])
})

test("src knows nothing of the command line, nor of the tests", () => {
  const wrong = edges.filter(({ from, to }) => from.startsWith("src/") && !to.startsWith("src/"))
  expect(wrong.map(show)).toEqual([])
})

test("of the command line only the local commands know more of src than the client", () => {
  const wrong = edges.filter(
    ({ from, to }) => from.startsWith("cli/") && SERVER.test(to) && !LOCAL.test(from),
  )
  expect(wrong.map(show)).toEqual([])
})

test("the client knows nothing of the server, and the server nothing of it", () => {
  const ofClient = ({ from, to }: Edge) =>
    from.startsWith("src/client/") !== to.startsWith("src/client/")
  const ofServer = arrows.filter(({ from }) => !from.startsWith("src/console/"))
  expect(ofServer.filter(ofClient).map(show)).toEqual([])
})

test("the console knows the client and pure files alone, and nothing imports it", () => {
  const inConsole = (path: string) => path.startsWith("src/console/")
  const imported = arrows.filter(({ from, to }) => inConsole(from) !== inConsole(to))
  const wrong = imported.filter(({ to }) => !/^src\/(client|lib)\//.test(to))
  expect(wrong.map(show)).toEqual([])
  const packages = src.filter(({ path }) => inConsole(path)).flatMap(({ packages }) => packages)
  expect(packages.filter((name) => !/^preact(\/hooks)?$/.test(name))).toEqual([])
})

test("the component knows itself alone, and nothing imports it", () => {
  const inComponent = (path: string) => path.startsWith("src/component/")
  const wrong = arrows.filter(({ from, to }) => inComponent(from) !== inComponent(to))
  expect(wrong.map(show)).toEqual([])
  expect(src.filter(({ path }) => inComponent(path)).flatMap(({ packages }) => packages)).toEqual(
    [],
  )
})

test("nothing imports itself by a detour", () => {
  expect(circle(edges)?.join(" -> ")).toBeUndefined()
})

/** Of the folders, not of the files only: routes and the files at the root stand around them. */
test("no folder imports itself by a detour", () => {
  const folderOf = (path: string) => /^src\/([^/]+)\//.exec(path)?.[1] ?? ""
  const inside = arrows.filter((arrow) =>
    Object.values(arrow).every((path) => folderOf(path) !== "" && !isRoutes(path)),
  )
  const between = inside.map(({ from, to }) => ({ from: folderOf(from), to: folderOf(to) }))
  expect(circle(between.filter(({ from, to }) => from !== to))?.join(" -> ")).toBeUndefined()
})

test("fan-out imports no channel: the channels give it their planners", () => {
  const wrong = arrows.filter(
    ({ from, to }) => /^src\/fan-out\//.test(from) && /^src\/(emails|push|sms|inbox)\//.test(to),
  )
  expect(wrong.map(show)).toEqual([])
})

/** A channel as a string or a part of a name; `push` of an array is none. */
const CHANNEL = /email|sms|(?<![.\w])push\b|in_app|inApp/i

/**
 * What may name channels: the statuses and event fields of each, in one table; and the key under which rows keep the
 * address of a recipient, which the rest of `messages` reads as `email: address`.
 */
const NAMING = [
  "src/messages/event-data.ts",
  "src/messages/message-envelope.ts",
  "src/messages/status-changes.ts",
  "src/messages/tables.ts",
]

test("neither messages nor fan-out names a channel", () => {
  const named = src.filter(
    ({ path, code }) =>
      /^src\/(messages|fan-out)\//.test(path) &&
      CHANNEL.test(code.replaceAll(/\bemail: address\b|"\.[^"]*"/g, "")),
  )
  expect(paths(named).filter((path) => !NAMING.includes(path))).toEqual([])
})

test("the list of channels stands once for the server, and once for the command line", () => {
  const listing = sources.filter(({ code }) => code.includes('["email", "push", "sms", "in_app"]'))
  const known = ["cli/lib/flags.ts", "src/client/operations.ts", "src/lib/preferences.ts"]
  expect(paths(listing).sort()).toEqual(known)
})

test("no file outgrows a sitting", () => {
  const long = sources.filter(
    ({ path, text }) => path !== GENERATED && text.trimEnd().split("\n").length > MAX_LINES,
  )
  expect(paths(long)).toEqual([])
})

test("no function outgrows a screen", () => {
  const long = sources.flatMap(({ path, text }) =>
    functionsOf(path, text)
      .filter(({ lines }) => lines > MAX_FUNCTION_LINES)
      .map(({ name, lines }) => `${path}: ${name} has ${lines} lines`),
  )
  expect(long).toEqual([])
})

test("an exported type or class has a name of its own in src and cli", () => {
  const EXPORTED = /^export (?:abstract )?(?:class|interface|type)\s+(\w+)/gm
  const named = sources.flatMap(({ path, text }) =>
    [...text.matchAll(EXPORTED)].map(([, name = ""]) => ({ name, path })),
  )
  expect(sharedNames(named)).toEqual([])
})

test("a file of src has a name of its own, but for those that every feature has", () => {
  const named = src
    .filter(({ path }) => !SHARED_FILES.test(path))
    .map(({ path }) => ({ name: basename(path), path }))
  expect(sharedNames(named)).toEqual([])
})

/** `name: path path` for each name that several of them have. */
const sharedNames = (all: { name: string; path: string }[]) =>
  [...Map.groupBy(all, ({ name }) => name)]
    .filter(([, users]) => users.length > 1)
    .map(([name, users]) => `${name}: ${paths(users).join(" ")}`)

test("every file has a name that says what it holds", () => {
  const wrong = sources.filter(({ path }) => VAGUE.test(path) || /[A-Z_]/.test(path))
  expect(paths(wrong)).toEqual([])
})

test("no checker is told to look away", () => {
  const silenced = /biome-ignore|@ts-(ignore|expect-error|nocheck)/
  expect(paths(sources.filter(({ text }) => silenced.test(text)))).toEqual([])
})

test("lib is pure: neither files, nor network, nor a database", () => {
  const impure = /^(node:(fs|net|tls|https?|http2|dns|child_process)|bun:sqlite|drizzle-orm)/
  const wrong = src.filter(
    ({ path, packages }) => path.startsWith("src/lib/") && packages.some((one) => impure.test(one)),
  )
  expect(paths(wrong)).toEqual([])
})

test("the worker thread brings along neither the store nor the settings nor the network", () => {
  const forbidden = /^src\/(store\/|server\.ts|app\.ts|core\/(config|net|dns|secrets)\.ts)/
  // Made for a thread, and alone: what they import counts.
  const made_for_it = [
    "src/store/apply-migrations.ts",
    "src/store/copy-rows.ts",
    "src/store/database-copy.ts",
    "src/store/file-tasks.ts",
    "src/store/migrations.ts",
    "src/store/named-blobs.ts",
    "src/store/postgres-pool.ts",
    "src/store/read-task.ts",
    "src/store/shared-tables.ts",
  ]
  const wrong = reachable("src/worker.ts").filter(
    ({ path, packages }) =>
      !made_for_it.includes(path) &&
      (forbidden.test(path) ||
        packages.some((one) => /^(drizzle-orm|bun:sqlite|elysia)/.test(one))),
  )
  expect(paths(wrong)).toEqual([])
})

/** Holds the text of programs that readers of the reference paste. */
const PASTED = "src/pages/docs/program-examples.ts"

test.each<[string, RegExp, RegExp]>([
  ["the environment", /process\.env|Bun\.env/, /^(src\/core\/config|cli\/lib\/environment)\.ts$/],
  [
    "the clock",
    /Date\.now\(|new Date\(\)/,
    /^(src\/core|cli\/lib)\/time\.ts$|^src\/(console\/clock|component\/now)\.ts$/,
  ],
  [
    "a raw fetch",
    /(?<![.\w])fetch\(/,
    /^(src\/core\/net|src\/(console\/(requests|development)|component\/(inbox-requests|worker\/push-worker))|cli\/lib\/(client|download|post))\.ts$/,
  ],
  ["drizzle's transaction", /\.transaction\(/, /^src\/(store|component\/worker)\//], // of a browser's database
  // What a running server does again and again is a row of `recurringWork` in `src/work.ts`. These timers live
  // shorter or longer than it: of a listener, a mail server, open sockets, a loop, a backup, or of the disk.
  [
    "a timer that repeats",
    /setInterval\(/,
    /^(cli|src\/console)\/|^src\/(core\/(deadline|idle|disk|certificate)|jobs\/loop|smtp\/mail-servers|http\/(connection-limits|sockets)|operations\/backup\/create-backup|webhooks\/delivery-work)\.ts$/,
  ],
  ["a database driver", /"bun:sqlite"|drizzle-orm\/bun-|new SQL\(/, /^src\/store\//],
])("%s is used in its own place only", (_, pattern, place) => {
  const users = paths(sources.filter(({ code }) => pattern.test(code)))
  expect(users.filter((path) => path !== PASTED && !place.test(path))).toEqual([])
})

/** Forms that have gone, by the row of the clean-up that took them out: a pattern of a path or of code. */
const GONE: [string, RegExp][] = [
  [
    "a walk of its own over rows in pages, over ranges of rows, or over files that no row names",
    /\b(deliverySteps|hasToHold|ArchiveSinks|ExtractSinks|databaseSink|requireEmptyPostgres|notifyOperators|notifyOfLackingFiles|ShownProgress|holdState)\b|store\/fill-postgres/,
  ],
  [
    "a second way to verify received mail, or a reason for a verdict that nothing shows",
    /inbound\/(mail-verdicts|small-mail-task)\b|\b(verifyStep|sureFault|chainFault)\b/,
  ],
  [
    "a release that is copied before it is checked, or a second way to sync a file",
    /release\.tar\.gz|\bsyncFile\(|\bfunction syncFolder\(folder: string\): void|\bwithServer\(/,
  ],
  [
    "interfaces over the database for what a send asks of it",
    /\b([aA]udienceRules|[sS]uppressionRules|[sS]enderDomains)\b/,
  ],
  [
    "commands that are built by hand beside the rows",
    /cli\/commands\/backup\b|\blazily\(|function define\(program|addCommand\(program/,
  ],
  [
    "settings told in three parts, a class around shared windows, or a recorder made for a type",
    /\b(groupReader|SharedWindows|recorder\(|PeopleList|ownFields)\b/,
  ],
  [
    "parts of the store and of an upgrade in files of their own that one other file needs",
    /(store\/(connect-postgres|schema-differences|start-lock|free-pages)|upgrade\/kept-schema|local\/upgrade-end)\b/,
  ],
  [
    "records and refusals of providers in a file of their own, or reads that a noun has",
    /providers\/(config-record|refused-return-paths)\b/,
  ],
  [
    "a second form of a reply that refuses in SMTP, or a part of a mail server in a file of its own",
    /\bSubmissionRefusal\b|\bNotReady\b|smtp\/(mail-server|client-limits|checked-stream|submission-(login|replies)|submitted-template)\b[".]/,
  ],
  [
    "a second way in which the owner of an address ends or allows something: `choose` takes a channel or a kind",
    /\b(chooseChannel|chooseKinds?|endKind|allowKind|endChannel|allowChannel|addPlaces|removePlaces)\b/,
  ],
  [
    "a reader of CSV or of lines that its caller pushes and ends, or an importer that reads heads itself",
    /\b(CsvReader|LineReader|ADDRESS_NAMES)\b/,
  ],
  [
    "a buffer of its own for changes that are written later: `WriteBehind` gathers them",
    /\bflushRipe\b|#dropped\b/,
  ],
  [
    "a fragment of received mail, the mailbox, domains, consents or suppressions in a file of its own",
    /^src\/(inbound\/(delivering-shares|project-space|quoted-proof|report-(facts|owner)|small-mail|spam-signs|mail-(authors|content)|inbound-routes|route-loops|received-totals|process-job)|mailbox\/(link-probe|unsubscribe-signs|action-routes|sender-domains|mail-receiver|mailbox-retention)|domains\/(check-hosts|domain-fields|transition|sender-authentication|record-targets)|consents\/(schemas|consent-chain|moved-consents)|suppressions\/(expiry|general-bounces))\.ts$/,
  ],
  [
    "a fragment of subscribers, topics or lib in a file of its own",
    /^src\/(subscribers\/(choice-events|preference-schemas|category-schemas)|topics\/known-topics|lib\/(xml|mail-kind|owner-turns|bounce-(subtype|blame)|link-check))\.ts$/,
  ],
  [
    "a body that a command builds of its flags, or a noun that builds its own tree of commands",
    /\b(shownEndpoint|shownProvider|endpointBody|composeBody)\b|cli\/lib\/((checks|tracking)-text|publish-progress|message-status|byte-size|certificate-words|text-lines)\.ts|cli\/commands\/(restore|db)\.ts/,
  ],
  [
    "a private word: require, forUpdate, mergedIds, readSnapshot, startLock, SendBatcher, anonymousRow",
    /\bdemand[A-Z]|\b(heldForShare|heldInPlace|lockForUpdate|heirsOf|readOneMoment|inTurn|RUNS_ON|strangerRow|Intake|vetUrl)\b/,
  ],
  [
    "a half of a thought of templates or tracking in a file of its own",
    /^src\/(templates\/(slow-templates|template-uses|moment|texts|versions|template-record|preview|render(-task)?)|tracking\/untracked-html)\.ts$/,
  ],
  [
    "a reader of a body that checks the schema itself",
    /\bwithEmail\b|\bcheck\((schemas\.)?[A-Z]\w*, body, problems\)/,
  ],
  [
    "a part of a thought of its only importer in a file of its own",
    /^src\/(core\/(dns-wire|abort|config-sources|config-smtp|config-reputation)|tenancy\/(sign-up|setting-groups)|identity\/(link-sessions|project-caller)|http\/(own-page|openapi-events|open-connections))\.ts$/,
  ],
  [
    "a second list of members, or an answer that repeats the fields of its schema",
    /^src\/tenancy\/project-members\.ts$|\b(user|project|account|invitation|apiKey|session)Record\b/,
  ],
  [
    "parts of the reputation of an account that have a file of their own",
    /reputation\/(window|freeze|forecast)\b/,
  ],
  [
    "the record of an email, or one side of its stages, in a file of its own",
    /emails\/(email-record|text-of-html|explain)\b[".]/,
  ],
  ["a key of tokens that has several uses", /\bKEY_USES\b|\bKeyUse\b/],
  ["a second way to lock a project", /\bholdProject\b/],
  ["rows of counts that are added up before `adder` does so", /\b(bumpEach|shardOf)\b/],
  ["a template is validated", /judge-template|JudgedTemplate/],
  ["a page that a route puts together by hand", /\b(asPage|keyById)\b/],
  [
    "a file of its own for each setting that is an object",
    /tenancy\/(branding|retention|origins|quiet-hours|frequency-cap)-setting/,
  ],
  ["a list of stages for each of preflight and explain", /explain-decision|PREFLIGHT_CHECKS/],
  [
    "a part of a command that has a file of its own",
    /domain-checks|subscriber-columns|template-neighbours|child-output|restore-unknown|reputation-screen/,
  ],
  ["a recipient has an address", /messages\.recipient\b|outcome\.email\b/],
  [
    "what is neutral stands in messages",
    /^src\/(messages\/defer|fan-out\/email-texts|emails\/(accept|batch|suppressed|audience-obstacle|email-audience|email-category|provider-jobs))\.ts$/,
  ],
  [
    "an hourly sweep of invariants, or a second daily check",
    /invariant-sweep|keep-checked|webhook-totals/,
  ],
  [
    "a loop with a timer of its own for what is a row of recurring work",
    /\bkeep(Tidy|Backups|Invariants)\(|backup-schedule|followMasterKey|joinAsNode/,
  ],
  ["zones as words in a time of the command line", /zoneNamed/],
  [
    "page-level recovery of SQLite: the newest verified backup is the way back",
    /store\/recover|sqlite-format|db-recover|db recover/,
  ],
  [
    "an upgrade that tries the new version on a copy, or has a process that watches over it",
    /upgrade-trial|trialFolder|pauseQueues|upgrade-guard|--guard/,
  ],
  ["a file of its own for the held part of a fan-out", /held-fan-outs|dropHeld\(/],
  ["a second reader of html, or turns by a map", /\breadTag\(html|asciiLower|limited</],
  ["the signing of a release in the program itself", /signDigest|secretKeyText/],
  [
    "a fragment of a screen of the mailbox",
    /^src\/console\/(steps\/|use-|mail\/(\w+-row|(html|text|source|headers|attachments)-view|use-asked|mail-actions|mailbox-dialogs)\.)/,
  ],
  ["a second reader of links or their surroundings", /link-surroundings|host-names|\blinksOf\(/],
  ["a second SMTP client in the command line", /\bSmtpWire\b|smtp-wire/],
  ["the page of `templates preview`", /\btemplate-preview\b|templates preview/],
  [
    "lists of tables by hand: each table declares its life (`store/life.ts`)",
    /operations\/(table-ends|subscriber-traces|deleted-subscriber)|\b(tableEnds|OF_PROJECTS|OF_ACCOUNTS)\b/,
  ],
  ["sealed heads of consents", /consents\/(chain|fill)-heads|\bconsentHeads\b/],
  [
    "a local command with its own way to open settings, or to tell what went wrong with its data",
    /archiveFailure|QUIET = \{ "log\.level"|startFailure\(\w+, \{ listen/,
  ],
  [
    "a fragment of smoke, of the event stream or of a command of this machine",
    /cli\/(local\/(smoke-server|open)|commands\/(me|tui|config)|lib\/completion\/scripts)\.|openEventStream/,
  ],
  [
    "a request of the monitor that stands apart from its screen, or its own reader of html",
    /cli\/tui\/(loads|audience-news|(detail|list)-lines|text-of-html)\.|changeWebhook|load_endpoints/,
  ],
  [
    "a second description of tables and records in the monitor",
    /MonitorColumn|cli\/tui\/(cells|table-lines|details|subscriber-lines|audience-loads|box-loads)\./,
  ],
]

/** Lists of records that no declared noun makes, each with its reason. It only shrinks. */
const NOT_DECLARED: Record<string, string> = {
  "src/audit-log/audit-log.ts": "entries are added and read, and never change",
  "src/auth/factors/passkeys.ts": "a passkey is of a user, and comes and ends by proofs",
  "src/auth/organizations/organization-invitations.ts": "of an organization, mailed and revoked",
  "src/auth/organizations/organization-members.ts": "of an organization, and about users",
  "src/auth/user-sessions.ts": "a session is of a user, begins with a sign-in and ends",
  "src/consents/consents.ts": "a record of a chain is added and read, and never changes",
  "src/consents/routes.ts": "as consents.ts",
  "src/fan-out/publishing.ts": "the fan-out makes, moves and ends publishes",
  "src/identity/sessions.ts": "a session is of a person, and of no project",
  "src/messages/scheduled.ts": "a view of messages that wait",
  "src/auth/user-list.ts": "owned by an environment, and filtered along memberships",
  "src/subscribers/subscriber-list.ts":
    "search by postings, several ways to name one, merges and events",
}

test("a list of records comes of a declared noun, or stands among the others with a reason", () => {
  const OWN = /^src\/(store\/rows|identity\/noun)\.ts$/
  const lists = src.filter(
    ({ path, code }) => !OWN.test(path) && /\b(rowList|boundedList)\(/.test(code),
  )
  expect(paths(lists).sort()).toEqual(Object.keys(NOT_DECLARED).sort())
})

test("each table declares its life behind it, and the operations know every one", () => {
  const gathering = sources.find(({ path }) => path === "src/operations/table-files.ts")?.text ?? ""
  const wrong = src
    .filter(({ path }) => path.endsWith("/tables.ts"))
    .flatMap(({ path, text }) => [
      ...(gathering.includes(`"../${path.slice("src/".length, -".ts".length)}"`) ? [] : [path]),
      ...[...text.matchAll(/^export const (\w+) = table\(/gm)]
        .filter(([, name]) => !text.includes(`\nlife(${name}, {`))
        .map(([, name]) => `${path}: ${name}`),
    ])
  expect(wrong).toEqual([])
})

test("what has gone does not come back", () => {
  const back = sources.flatMap(({ path, code }) =>
    GONE.filter(([, form]) => form.test(path) || form.test(code)).map(
      ([what]) => `${path}: ${what}`,
    ),
  )
  expect(back).toEqual([])
})
