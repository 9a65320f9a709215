import tokens from "./tokens.css" with { type: "text" }

const withoutComments = (css: string) => css.replaceAll(/\/\*[\s\S]*?\*\/\s*/g, "")

/** One sheet, no outside fonts; it follows the reader's own choice of light or dark. */
export const style = `
:root{color-scheme:light dark;--ink:#1d2330;--soft:#5b6475;--line:#dfe3ea;--paper:#fff;--side:#f6f7f9;--code:#f1f3f7;--link:#2457c5;
--get:#0b6e4f;--post:#2457c5;--put:#8a5a00;--patch:#8a5a00;--delete:#b3261e}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#9aa4b5;--line:#2c3340;--paper:#12151b;--side:#181c24;--code:#1e2430;--link:#8ab0ff;
--get:#5fd3a5;--post:#8ab0ff;--put:#f0c060;--patch:#f0c060;--delete:#ff8a80}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
display:grid;grid-template-columns:17rem minmax(0,1fr);overflow-wrap:anywhere}
nav{background:var(--side);border-right:1px solid var(--line);padding:1.5rem 1rem;height:100vh;position:sticky;top:0;overflow:auto;font-size:.875rem}
nav h2{font-size:.75rem;text-transform:uppercase;letter-spacing:.06em;color:var(--soft);margin:1.4rem 0 .35rem}
nav .home{font-size:1.05rem;font-weight:650;color:var(--ink)}
nav ul{list-style:none;margin:0;padding:0}
nav li a{display:flex;gap:.5rem;padding:.2rem .25rem;border-radius:5px;color:var(--ink);line-height:1.35}
nav li a:hover{background:var(--code);text-decoration:none}
nav .method{flex:0 0 3.1rem;font-size:.65rem;padding-top:.16rem}
main{max-width:58rem;padding:2.2rem 2.5rem 6rem;min-width:0}
a{color:var(--link);text-decoration:none}
a:hover{text-decoration:underline}
a:focus-visible,summary:focus-visible{outline:2px solid var(--link);outline-offset:2px}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .6rem}
h1 small{font-size:.9rem;font-weight:400;color:var(--soft)}
main h2{font-size:1.35rem;margin:3rem 0 .8rem;padding-top:1.4rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:0}
h4{font-size:.8rem;color:var(--soft);margin:1.1rem 0 .3rem;font-weight:600}
p{margin:.5rem 0}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.86em}
code{background:var(--code);padding:.1em .3em;border-radius:4px}
pre{background:var(--code);padding:.9rem 1rem;border-radius:8px;overflow-x:auto;line-height:1.5;overflow-wrap:normal}
pre code{background:none;padding:0}
article{padding:1.3rem 0;border-top:1px solid var(--line)}
main h1+h2{border-top:0;padding-top:0;margin-top:1.6rem}
h2+article{border-top:0;padding-top:.4rem}
.route{display:flex;flex-wrap:wrap;gap:.2rem .7rem;align-items:baseline;margin:.2rem 0 .4rem}
.route code{background:none;padding:0;font-size:.92rem}
.method{font:700 .75rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.GET{color:var(--get)}.POST{color:var(--post)}.PUT{color:var(--put)}.PATCH{color:var(--patch)}.DELETE{color:var(--delete)}
.needs{color:var(--soft);font-size:.85rem}
.fields{border:1px solid var(--line);border-radius:8px;font-size:.875rem}
.fields>div{display:grid;grid-template-columns:minmax(9rem,15rem) minmax(6rem,11rem) minmax(0,1fr);gap:.2rem 1rem;padding:.4rem .8rem}
.fields>div+div{border-top:1px solid var(--line)}
.fields code{background:none;padding:0}
.fields p{margin:0}
.kind{color:var(--soft)}
.fields b{font-size:.7rem;font-weight:600;color:var(--delete)}
.fields.codes>div{grid-template-columns:4rem minmax(0,1fr)}
.codes b{color:inherit;font-size:inherit}
table{border-collapse:collapse;font-size:.875rem}
th,td{text-align:left;vertical-align:top;padding:.4rem .8rem;border:1px solid var(--line)}
.wide{overflow-x:auto;overflow-wrap:normal}
.wide code{white-space:nowrap}
details{margin-top:.9rem}
summary{cursor:pointer;color:var(--link);font-size:.875rem}
details .fields{margin-top:.5rem}
@media (max-width:52rem){
body{display:block}
nav{position:static;height:auto;max-height:none;border-right:0;border-bottom:1px solid var(--line);padding:1rem 1.1rem}
nav .operations{display:none}
nav h2{display:inline-block;margin:.6rem .9rem 0 0}
nav ul:not(.operations) li{display:inline-block;margin-right:.7rem}
nav h2:first-of-type{display:none}
main{padding:1.4rem 1.1rem 4rem}
h1{font-size:1.55rem}
.fields>div{grid-template-columns:minmax(0,1fr)}
.fields.codes>div{grid-template-columns:3rem minmax(0,1fr)}
}
@media print{nav{display:none}body{display:block}}
`

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
