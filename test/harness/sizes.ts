/** How much the large tests do. `bun run test --full` takes the sizes a release is judged by. */
const full = process.env.BELFRY_TEST_FULL === "1"

export const sizes = {
  /** Commands of the reference that are run: those written by hand, or all. */
  reference_commands: full ? 1_000 : 70,
  /** Answers of a model that are made up: cut, empty, garbage, endless, silent. */
  model_answers: full ? 500 : 60,
  /** Requests that fast-check invents against the email routes. */
  fuzz: full ? 5_000 : 1_000,
  /** Letters that are composed, signed and verified by others. */
  letters: full ? 1_000 : 50,
  /** Mails of every shape that are submitted, relayed to Postfix, and verified by others. */
  submissions: full ? 500 : 50,
  /** URLs that are to lead the one way out to where nobody may go. */
  inward: full ? 10_000 : 1_000,
  /** Times that the binary is killed with SIGKILL under load. */
  kills: full ? 50 : 10,
  postgres_kills: full ? 20 : 2,
  /** Times that it is, at full load, until nothing may be held. */
  crash_loops: full ? 20 : 5,
  /** Subscribers of a publish whose server is killed, and times that it is. */
  published: full ? 100_000 : 1_000,
  publish_kills: full ? 20 : 3,
  /** Subscribers of a publish in two channels whose server is killed. */
  published_twice: full ? 5_000 : 300,
  /** People with two devices each, whose server is killed while they get a publish, and times that it is. */
  published_pushed: full ? 10_000 : 300,
  push_kills: full ? 5 : 2,
  /** Times that both mail servers are killed under load. */
  mail_kills: full ? 30 : 3,
  /** SMTP dialogues that are made up, and broken mails that come by SMTP, for both mail servers. */
  dialogues: full ? 20_000 : 1_000,
  /** Messages that are scheduled for the same second. */
  scheduled: full ? 100_000 : 1_000,
  /** Texts that leave by a real gateway. */
  gateway_texts: full ? 50 : 10,
  /** Messages that wait while a provider refuses our login. */
  waiting: full ? 10_000 : 500,
  /** Wrong passwords that are tried for one user. */
  guesses: full ? 10_000 : 300,
  /** Of those who may not call a route, and of the ids that are not theirs, each route meets every so manieth one. */
  outsider_steps: full ? 1 : 3,
  /** RSA keys that take long to make. */
  large_keys: full ? [3072, 4096] : [],
  /** Looks of each page: screens, light and dark. */
  looks: full ? 5 : 1,
  /** Of places and data that differ in nothing that a feature knows, so many. */
  variants: full ? Number.POSITIVE_INFINITY : 1,
  /** Whether all that a person does in the pages is done by keyboard alone, not only what the mailbox has. */
  keyboard: full,
  /** Of the views of a mail and the dialogs of the mailbox, every so manieth one is looked at by itself. */
  view_steps: full ? 1 : 3,
  /** Of the guides, every so manieth one is run, beside the README. */
  run_guides: full ? 1 : 4,
  /** Made-up subjects that are drawn on each kind of terminal. */
  subjects: full ? 10_000 : 2_000,
  /** Rows that a monitor is scrolled through: it keeps 10,000. */
  scrolled: full ? 10_200 : 600,
  /** Mail clients of a port that say next to nothing. */
  slow_clients: full ? 1_000 : 300,
  /** Of the syncs that fail, every so manieth one. */
  failed_syncs: full ? 1 : 3,
  /** Of the guides, every so manieth one is looked at on a phone. */
  guide_steps: full ? 1 : 6,
  /** Of the mails that were made to hurt, every so manieth one arrives, and is submitted. */
  bomb_steps: full ? 1 : 2,
  /** Of the two places of a mail, its own page and the frame of the mailbox, so many show each hostile one. */
  hostile_places: full ? 2 : 1,
  /** Of four addresses or views, so many show each of the texts that would run. */
  injected_places: full ? 4 : 1,
  /** Whether Firefox looks at the pages, as Chromium does in every run. */
  firefox: full,
  /** Lines of a file of subscribers that is imported over a SIGKILL. */
  imported: full ? 1_000_000 : 8_000,
  /** People who bring their passwords from another system. */
  imported_users: full ? 1_000 : 30,
  /** Subscribers that come from a file and get a publish. */
  audience: full ? 100_000 : 1_000,
  /** Seconds for which the network of a page that shows an inbox is off. */
  offline_seconds: full ? 30 : 0,
  /** Things that users and servers do with organizations, beside a model of them. */
  organization_acts: full ? 2_000 : 300,
  /** Things that are done with one inbox before its counts are compared with a recount. */
  inbox_acts: full ? 5_000 : 400,
  /** Cases that a second implementation of the decision decides, too. */
  decisions: full ? 50_000 : 5_000,
  /** Of the half hours around a change of the clock, every so manieth one is asked for. */
  quiet_steps: full ? 1 : 3,
  /** Subscribers that are searched in every way, and searches that are compared with a look at each of them. */
  searched: full ? 4_000 : 600,
  searches: full ? 1_000 : 60,
  /** Events in the largest feed, jobs in the largest backlog. */
  events: full ? 100_000 : 10_000,
  /** Received mails whose verdicts are compared with those of others. */
  verdicts: full ? 300 : 60,
  /** Suppressions of the longest export. */
  exported: full ? 100_000 : 5_000,
  /** Texts whose reports come in some order. */
  report_orders: full ? 500 : 10,
  /** Push messages through connections that end, and those that nobody answers for ten seconds. */
  pushes: full ? 5_000 : 300,
  stalled_pushes: full ? 50 : 0,
  /** Workflows with a mistake or two that two other judges of JSON Schema judge, too. */
  workflows: full ? 2_000 : 400,
  /** Made-up texts whose segments are compared with the count of another library. */
  texts: full ? 5_000 : 1_000,
  /** Texts that are sent while their provider does everything wrong. */
  faulty_texts: full ? 200 : 40,
  /** Made-up templates that are sent. */
  templates: full ? 20_000 : 1_000,
  /** Clients that say made-up frames at the socket of an inbox, up to five each. */
  inbox_frames: full ? 800 : 200,
  /** Made-up bodies of preferences. */
  preferences: full ? 10_000 : 1_000,
  /** Rounds of killing a backup at each of its steps. */
  backup_kills: full ? 10 : 1,
  /** Of the steps of a backup, every so manieth one is killed; and steps at which the disk is full. */
  backup_steps: full ? 1 : 4,
  backup_errors: full ? 8 : 1,
  /** Kinds of steps of a backup, the one that makes it count first. */
  backup_kinds: full ? 4 : 1,
  /** Whether what another test shows on SQLite is shown on a Postgres, too, with the binary. */
  on_postgres: full,
  /** Whether files that may not grow are tried beside a disk that is full. */
  file_limits: full,
  /** Whether a release is built as its maintainers build it, and those for other platforms run, too. */
  releases: full,
  /** Whether a suite of Postgres is started without a server, so that it starts its own. */
  own_server: full,
  /** Whether the checks of `smoke` run a second time, to be told in another form. */
  smoke_formats: full,
  /** Broken mails that are read as received ones. */
  received: full ? 20_000 : 1_000,
  /** Length of a text that repeats one thing. */
  repeated_bytes: full ? 2_000_000 : 500_000,
  /** Backups that are made under load and restored. */
  restored_copies: full ? 50 : 2,
  /** Mails of a box that is lost, and restored elsewhere. */
  lost_box: full ? 5_000 : 100,
  /** Messages a day, over ten months. */
  retained: full ? 200 : 4,
  /** Ways of each kind in which an upgrade fails, and places at which it is killed. */
  upgrade_faults: full ? 16 : 1,
  upgrade_kills: full ? 16 : 0,
  /** Earlier schemas, the oldest first, that one command brings to the next release. */
  upgraded_schemas: full ? Number.POSITIVE_INFINITY : 0,
  /** Of the earlier schemas, every so manieth one is restored from a backup, and started, from the oldest on. */
  schema_steps: full ? 1 : 5,
  /** Of the bytes of an archive, every so manieth one is changed. */
  changed_bytes: full ? 1 : 21,
  /** Of the steps of a rotation, every so manieth one is killed. */
  rotation_steps: full ? 1 : 6,
  /** Subscribers whose inbox two foreign clients follow, changes of them, and kills of their server. */
  inbox_people: full ? 50 : 6,
  inbox_changes: full ? 5_000 : 300,
  inbox_kills: full ? 4 : 1,
  /** Whether the same is done on two nodes. */
  inbox_nodes: full,
}
