import tokens from "./tokens.css" with { type: "text" }

const withoutComments = (css: string) => css.replaceAll(/\/\*[\s\S]*?\*\/\s*/g, "")

/** Pages of one column. They have the look of the console. */
const columnStyle = `${withoutComments(tokens)}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: var(--text)/1.5 var(--sans) }
main { max-width: 27rem; margin: 8vh auto var(--space-6); padding: 0 var(--space-4) }
h1 { font-size: var(--text-large); line-height: 1.25; margin: 0 0 var(--space-4) }
label { display: block; margin: var(--space-4) 0 var(--space-1); font-weight: 600 }
input { width: 100%; min-height: 2.5rem; padding: var(--space-2) var(--space-3); font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--edge); border-radius: var(--radius) }
button { min-height: 2.5rem; margin-block: var(--space-5) 0; margin-inline: 0 var(--space-2); padding: var(--space-2) var(--space-4); font: inherit; font-weight: 600; color: inherit; background: var(--side); border: 1px solid var(--edge); border-radius: var(--radius); cursor: pointer }
button.go { background: var(--accent); border-color: var(--accent); color: var(--on-accent) }
.hint { margin: var(--space-1) 0 0; font-size: var(--text-small); color: var(--soft) }
.complaint, .notice { padding: var(--space-2) var(--space-3); border-inline-start: 4px solid var(--bad) }
.notice { border-color: var(--good) }
a { color: var(--accent) }
code { font-family: var(--mono); font-size: .95em; overflow-wrap: anywhere }
dt { font-weight: 600 } dd { margin: 0 0 var(--space-2); overflow-wrap: anywhere }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
`

/** Forms, errors and notices: a card under the bar of the console. */
export const smallStyle = `${columnStyle}
body { min-height: 100vh; background: var(--side); overflow-wrap: anywhere }
.bar { padding: var(--space-3) var(--space-4); background: var(--paper); border-block-end: 1px solid var(--line) }
.bar p { margin: 0; font-weight: 700 }
main { max-width: 30rem; margin: var(--space-7) auto; padding: var(--space-5); background: var(--paper); border: 1px solid var(--line); border-radius: var(--radius) }
main > :last-child, form > :last-child { margin-block-end: 0 }
h1 { margin-block-end: var(--space-3) }
strong { unicode-bidi: plaintext }
p { margin: 0 0 var(--space-3) }
form { margin-block-start: var(--space-4) }
.complaint, .notice { background: var(--side); border-radius: var(--radius) }
.code { font-family: var(--mono); letter-spacing: .1em; text-transform: uppercase }
a.go { display: inline-flex; align-items: center; min-height: 2.5rem; padding: var(--space-2) var(--space-4); font-weight: 600; text-decoration: none; background: var(--accent); color: var(--on-accent); border-radius: var(--radius) }
dl { margin: var(--space-4) 0; padding: var(--space-3) var(--space-4); background: var(--side); border-radius: var(--radius) }
dt { font-size: var(--text-small); color: var(--soft) } dd:last-child { margin: 0 }
.command { padding: var(--space-2) var(--space-3); background: var(--side); border-radius: var(--radius) }
@media (max-width: 34rem) { main { margin: 0; padding: var(--space-5) var(--space-4); border: 0; border-radius: 0 } body { background: var(--paper) } }
`

/** What pages for recipients of mail have beside that. They may be read from right to left. */
export const recipientStyle = `${columnStyle}
header { margin: 0 0 2rem } header img { display: block; max-height: 3rem; max-width: 100% } header p { margin: 0; font-weight: 600 }
fieldset { margin: 1.25rem 0 0; padding: 0; border: 0 } legend { padding: 0; font-weight: 600 }
.choice { display: flex; gap: .6rem; align-items: center; margin: .5rem 0; min-height: 1.75rem; font-weight: 400; overflow-wrap: anywhere }
fieldset ~ .choice { margin-top: 2rem }
.choice input { flex: none; width: 1.25rem; height: 1.25rem; margin: 0 }
footer { margin: 3rem 0 0; padding: 1rem 0 0; border-top: 1px solid var(--line); font-size: .875rem }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem } nav a, footer p a { display: inline-block; padding: .25rem 0 }
a { color: inherit } nav a[aria-current] { font-weight: 600; text-decoration: none }
bdi { overflow-wrap: anywhere } :focus-visible { outline-color: currentColor }
`
