import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { requestOf } from "../../client/client"
import { Button, Menu, ThemeSwitch } from "../parts/button"
import { CodeBlock, Commands } from "../parts/code-block"
import { Dialog } from "../parts/dialog"
import { Check, Choice, Field } from "../parts/field"
import { Badge, Empty, Notice, Trouble, Waiting } from "../parts/notice"
import { Table } from "../parts/table"
import { Tabs } from "../parts/tabs"
import { notify } from "../parts/toast"
import { VirtualList } from "../parts/virtual-list"
import { RequestError } from "../requests"

const LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
const ARABIC = "مرحبا بك في بلفري، هذا نص من اليمين إلى اليسار"

const GOOD = <Badge tone="good">success</Badge>
const BAD = <Badge tone="bad">exhausted</Badge>
const WAITS = <Badge tone="warn">pending</Badge>

/** `/parts`: each shared part in each of its states, to look at and to test. */
export const Page = () => (
  <div class="narrow">
    <h1>Parts</h1>
    <p>
      The pages of the console use these parts. Switch the theme, or change the width of the window.
    </p>
    <Buttons />
    <Fields />
    <Words />
    <Containers />
    <Block title="Table">
      <Table
        caption="Deliveries"
        columns={["Endpoint", "Status", "Attempts"]}
        rows={[
          { id: "1", cells: ["https://example.test/hooks", GOOD, 1] },
          { id: "2", cells: [LONG, BAD, 8] },
          { id: "3", cells: [ARABIC, WAITS, 2] },
        ]}
      />
    </Block>
    <Block title="List of 10,000 rows">
      <LongList />
    </Block>
    <Block title="From right to left">
      <div dir="rtl" lang="ar">
        <Notice tone="good">
          <p>{ARABIC}</p>
        </Notice>
        <Field label={ARABIC} value={ARABIC} onInput={() => {}} hint={ARABIC} />
        <CodeBlock label={ARABIC} text={`belfry emails send --subject '${ARABIC}'`} />
      </div>
    </Block>
  </div>
)

const Block = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <section class="block">
    <h2>{title}</h2>
    {children}
  </section>
)

const Buttons = () => (
  <Block title="Buttons">
    <div class="buttons">
      <Button>Plain</Button>
      <Button look="go">Main action</Button>
      <Button look="danger">Delete</Button>
      <Button look="quiet">Quiet</Button>
      <Button pressed>Pressed</Button>
      <Menu text="Menu">
        <Button>First</Button>
        <Button>Second</Button>
      </Menu>
      <Button disabled>Disabled</Button>
      <Button look="go" is_busy>
        Works
      </Button>
      <ThemeSwitch />
    </div>
  </Block>
)

function Fields() {
  const [text, setText] = useState("")
  const [choice, setChoice] = useState<"one" | "two">("one")
  const [is_checked, setChecked] = useState(true)
  return (
    <Block title="Fields">
      <Field label="Empty" value={text} onInput={setText} placeholder="you@example.test" />
      <Field label="With a hint" value="hello" onInput={() => {}} hint="At most 998 characters." />
      <Field label="Code" value="svc_live_…" onInput={() => {}} is_code />
      <Field label="Several lines" value={`${LONG}\nmore`} onInput={() => {}} rows={3} />
      <Choice
        label="One of a few"
        value={choice}
        onChoose={setChoice}
        options={[
          { value: "one", text: "The first" },
          { value: "two", text: "The second" },
        ]}
      />
      <Check label="Only unread" checked={is_checked} onChange={setChecked} />
    </Block>
  )
}

const Words = () => (
  <Block title="Badges and notices">
    <p class="buttons">
      <Badge>queued</Badge>
      <Badge tone="good">delivered</Badge>
      <Badge tone="bad">bounced</Badge>
      <Badge tone="warn">deferred</Badge>
      <Badge>{LONG}</Badge>
    </p>
    <Notice>
      <p>A fact.</p>
    </Notice>
    <Notice tone="good">
      <p>Something went well.</p>
    </Notice>
    <Notice tone="warn">
      <p>Something needs a look. {LONG}</p>
    </Notice>
    <Trouble
      error={new RequestError(404, "not_found", "There is no mail 019….", {}, "req_0199a1c2")}
      onRetry={() => {}}
    />
    <Waiting />
    <Empty title="Nothing is here yet">
      <p>Send a first mail, and it appears here.</p>
      <div class="buttons">
        <Button look="go">Write a mail</Button>
      </div>
    </Empty>
  </Block>
)

type ExampleTab = "first" | "second" | "third"

function Containers() {
  const [tab, setTab] = useState<ExampleTab>("first")
  const [is_open, setOpen] = useState(false)
  return (
    <Block title="Tabs, dialog, toast, code">
      <Tabs
        label="Example"
        chosen={tab}
        onChoose={setTab}
        tabs={[
          { name: "first", text: "First" },
          { name: "second", text: "Second", count: 12 },
          { name: "third", text: "Third" },
        ]}
      >
        <p>The panel of the {tab} tab.</p>
      </Tabs>
      <div class="buttons">
        <Button onClick={() => setOpen(true)}>Open the dialog</Button>
        <Button onClick={() => notify("the mail was deleted")}>Toast</Button>
        <Button onClick={() => notify("the server does not answer", "bad")}>
          Toast of a failure
        </Button>
      </div>
      {is_open && (
        <Dialog
          title="Delete this mail?"
          onClose={() => setOpen(false)}
          actions={
            <>
              <Button onClick={() => setOpen(false)}>Keep it</Button>
              <Button look="danger" onClick={() => setOpen(false)}>
                Delete
              </Button>
            </>
          }
        >
          <p>Nobody can bring it back.</p>
        </Dialog>
      )}
      <CodeBlock label="curl" text={`curl -sS http://127.0.0.1:8080/v1/health\n# ${LONG}${LONG}`} />
      <Commands belfry="belfry mailbox list" request={requestOf("GET /v1/mailbox")} />
    </Block>
  )
}

const ROWS = 10_000

const ignore = () => {}

function LongList() {
  const [position, setPosition] = useState<number>()
  return (
    <div class="sample">
      <VirtualList
        label="Numbers"
        count={ROWS}
        row_height={40}
        position={position}
        onView={ignore}
        idOfRow={(at) => `sample-${at}`}
        onChoose={setPosition}
        renderRow={(at) => <span>Row {at + 1}</span>}
      />
    </div>
  )
}
