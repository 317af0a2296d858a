// style.cpp - the style sheet of every page. Colours: text has a contrast of 4.5 or more
// on its ground, lines and fills 3 or more, in both schemes (tests/pages measures them).
#include "draw.hpp"

namespace lockstep::tool::pages {

// Hues apart for the common kinds of colour blindness (after Okabe and Ito), darker or
// lighter than theirs where the ground asks for it.
const char* const style_sheet = R"css(:root{
 --ground:#fff;--panel:#f6f7f9;--ink:#14181d;--soft:#50585f;--edge:#d9dde2;--grid:#e6e9ed;--link:#0a58b0;
 --good:#0b6b43;--bad:#b3261e;
 --c0:#0072b2;--c1:#c2500a;--c2:#00805d;--c3:#a8478a;--c4:#8a6a00;--c5:#5b53c6;--c6:#4b5560;--c7:#007f8c}
@media (prefers-color-scheme:dark){:root{
 --ground:#101418;--panel:#181d23;--ink:#e8ebee;--soft:#a9b2bb;--edge:#343c45;--grid:#262d35;--link:#7ab8ff;
 --good:#5fd39b;--bad:#ff8f86;
 --c0:#5ab4f0;--c1:#ff9350;--c2:#3ccf9f;--c3:#f092cc;--c4:#e3c14a;--c5:#a9a3ff;--c6:#b9c3cc;--c7:#4fd3df}}
@media print{:root{
 --ground:#fff;--panel:#fff;--ink:#000;--soft:#333;--edge:#999;--grid:#ddd;--link:#000;--good:#064;--bad:#900;
 --c0:#0072b2;--c1:#c2500a;--c2:#00805d;--c3:#a8478a;--c4:#8a6a00;--c5:#5b53c6;--c6:#4b5560;--c7:#007f8c}}
*{box-sizing:border-box}
html{background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",
 "Liberation Sans",Arial,sans-serif;
 -webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0 auto;max-width:84rem;padding:1.5rem clamp(.9rem,3vw,2.5rem) 4rem}
h1{font-size:clamp(1.5rem,1.1rem + 1.8vw,2.3rem);line-height:1.15;margin:.4rem 0;letter-spacing:-.015em}
h2{font-size:1.45rem;line-height:1.25;margin:3.2rem 0 .5rem;padding-top:.9rem;border-top:2px solid var(--ink)}
h3{font-size:1.1rem;margin:2rem 0 .3rem}
h4{font-size:1rem;margin:0 0 .1rem;overflow-wrap:anywhere}
p,li{max-width:46rem}
p,li,h1,h2,h3,summary{overflow-wrap:anywhere}
p{margin:.4rem 0 .9rem}
a{color:var(--link)}
.lead,.caption,dt,details,nav{color:var(--soft)}
.verdict{border-left:4px solid var(--ink);padding:.1rem 0 .1rem 1rem;margin:1.2rem 0}
.verdict p{margin:.3rem 0;font-weight:600}
.caption{margin:.1rem 0 .6rem}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,17rem),1fr));gap:.6rem 1.6rem;margin:1.2rem 0;
 padding:1rem 1.1rem;
 background:var(--panel);border:1px solid var(--edge);border-radius:.5rem}
dd{margin:0;overflow-wrap:anywhere}
nav ol{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;padding:0;margin:1rem 0;list-style:none}
.figures{display:grid;grid-template-columns:minmax(0,1fr);gap:1.4rem;margin:1.2rem 0;align-items:start}
@media (min-width:75rem){.figures:has(> :nth-child(2)){grid-template-columns:repeat(2,minmax(0,1fr))}}
figure{margin:0;padding:1rem 1.1rem;background:var(--panel);border:1px solid var(--edge);border-radius:.5rem;
 min-width:0}
figure:only-child{max-width:58rem}
.column{container-type:inline-size}
.chart{display:block;width:100%;height:auto}
.narrow{display:none}
@container (max-width:33rem){.wide{display:none}.narrow{display:block}}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;list-style:none;padding:0;margin:.2rem 0 .5rem;font-size:.9rem}
.legend li{display:flex;align-items:center;gap:.4rem;overflow-wrap:anywhere}
.key{width:34px;height:14px;flex:none}
svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",Arial,sans-serif;
 fill:var(--ink)}
svg .t{fill:var(--soft)}
svg .al{fill:var(--soft);font-weight:600}
svg .ml{font-size:11.5px;font-style:italic}
svg .ml,svg .v,svg .bl{paint-order:stroke;stroke:var(--panel);stroke-width:4px;stroke-linejoin:round}
svg .v{font-variant-numeric:tabular-nums}
.g{stroke:var(--grid)}.gm{stroke:var(--grid);stroke-dasharray:1 3}
.ax{stroke:var(--soft);stroke-width:1.2}
.lv{stroke:var(--ink);stroke-width:1.3;stroke-dasharray:7 4}
.bd{stroke:var(--soft);stroke-width:1.1;stroke-dasharray:2 3}
.iv{fill:none;stroke:var(--ink);stroke-width:1.6;paint-order:stroke}
.st{stroke:var(--edge);stroke-width:1.6}
.l{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}
.da{stroke-dasharray:6 4;stroke-width:1.7}
.rf{stroke:var(--soft);stroke-width:1.6}
.p{fill:var(--c);stroke:var(--panel);stroke-width:.3px}
.hit{fill:none;stroke:none;pointer-events:all}
.p:hover{stroke:var(--ink);stroke-width:.6px}
.s:hover .l{stroke-width:3}
.b:hover .bl,.b:hover .v{font-weight:600}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}
 .c6{--c:var(--c6)}.c7{--c:var(--c7)}
.f0,.f1,.f2,.f3{stroke:var(--c);stroke-width:1.4}
.f0{fill:var(--c)}.f1{fill:url(#hatched)}.f2{fill:none}.f3{fill:url(#dotted)}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.9rem;margin:.6rem 0}
caption{text-align:left;font-weight:600;padding:.2rem 0}
th,td{padding:.25rem .7rem;border-bottom:1px solid var(--edge);text-align:left;vertical-align:top;white-space:nowrap}
thead th{border-bottom:2px solid var(--soft);color:var(--soft);vertical-align:bottom;white-space:normal}
tbody th{font-weight:500}
.prose{white-space:normal;min-width:13rem;max-width:46rem}
.n{text-align:right;font-variant-numeric:tabular-nums}
.good{color:var(--good)}.bad{color:var(--bad);font-weight:600}.dim{color:var(--soft)}
@media (max-width:33rem){thead{display:none}table,tbody,tr,th,td,caption{display:block;white-space:normal}
 tr{padding:.5rem 0;border-bottom:1px solid var(--edge)}tbody th{font-weight:600}
 th,td,.n{border:0;padding:.05rem 0;text-align:left;overflow-wrap:anywhere}
 td:empty{display:none}td[data-of]:not([data-of=""])::before{content:attr(data-of) ": ";color:var(--soft);font-weight:400}
 .prose{min-width:0}.scroll svg{min-width:0!important}}
details{margin-top:.5rem}
summary{cursor:pointer}
@media print{body{max-width:none;padding:0}h2,h3,h4{break-after:avoid}figure,tr{break-inside:avoid}
 figure{border-color:var(--edge)}nav{display:none}
 .scroll{overflow:visible}th,td{white-space:normal}}
)css";

const char* const fills = R"svg(<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)">
<path d="M1.5 0V6" style="stroke:var(--c1);stroke-width:2.6"/></pattern>
<pattern id="dotted" width="6" height="6" patternUnits="userSpaceOnUse">
<circle cx="3" cy="3" r="1.5" style="fill:var(--c3)"/></pattern>
</defs></svg>
)svg";

}  // namespace lockstep::tool::pages
