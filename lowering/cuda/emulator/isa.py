"""The instructions that the emulator knows, from the PTX ISA: forms, operands, and the first target and version.

What is not here is refused by name. The notation is that of :mod:`forms`.
"""

from __future__ import annotations

from .forms import Isa

__all__ = ["ISA"]

_MACROS = {
    "LOADED": "<T:b8|u8|s8|b16|u16|s16|f16|bf16|b32|u32|s32|f32|b64|u64|s64|f64>",
    "LEVELS": "{.<L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate>}"
    "{.<L2::evict_normal|L2::evict_first|L2::evict_last>}$HINT$AHEAD{.<v2|v4>}",
    "PLACES": "{.<const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster>}",
    "ORDER": "{.<relaxed|acquire|release|acq_rel>}{.$SCOPE}{.<global|shared|shared::cta|shared::cluster>}",
    "SCOPE": "<cta|cluster|gpu|sys>",
    "HINT": "{.L2::cache_hint}",
    "AHEAD": "{.<L2::64B|L2::128B|L2::256B>}",
    "BARS": "{.<shared|shared::cta>}",
    "FAR": "{.<shared|shared::cta|shared::cluster>}",
    "RANK": "<D:1d|2d|3d|4d|5d>",
    "TX": "mbarrier::complete_tx::bytes",
    "ANY": "s8|u8|s16|u16|s32|u32|s64|u64",
    "WORD": "<T:b32|b64|u32|u64|s32|s64|f32|f64>",
    "COMPARED": "<T:b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64|f16>",
    "COMPARE": "<eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan>",
    "ROUND": "<rn|rz|rm|rp>",
    "WHOLE": "<rni|rzi|rmi|rpi>",
    "FOUR": "{b32} {b32} {b32} {b32}",
}

_ARITHMETIC = """
add.<T:u16|u32|u64|s16|s64|s32|b16|b32|b64>  T T T
add.<T:u16x2|s16x2>  T T T  sm_90 ptx80
add.sat.s32  s32 s32 s32
add{.$ROUND}{.ftz}{.sat}.f32  f32 f32 f32
add{.$ROUND}.f64  f64 f64 f64
add{.rn}{.ftz}{.sat}.<T:f16|f16x2>  T T T  sm_53 ptx42
add{.rn}.<T:bf16|bf16x2>  T T T  sm_90 ptx78
sub.<T:u16|u32|u64|s16|s64|s32>  T T T
sub.sat.s32  s32 s32 s32
sub{.$ROUND}{.ftz}{.sat}.f32  f32 f32 f32
sub{.$ROUND}.f64  f64 f64 f64
sub{.rn}{.ftz}{.sat}.<T:f16|f16x2>  T T T  sm_53 ptx42
sub{.rn}.<T:bf16|bf16x2>  T T T  sm_90 ptx78
mul.<lo|hi>.<T:u16|u32|u64|s16|s32|s64>  T T T
mul.wide.<T:u16|u32|s16|s32>  2T T T
mul{.$ROUND}{.ftz}{.sat}.f32  f32 f32 f32
mul{.$ROUND}.f64  f64 f64 f64
mul{.rn}{.ftz}{.sat}.<T:f16|f16x2>  T T T  sm_53 ptx42
mul{.rn}.<T:bf16|bf16x2>  T T T  sm_90 ptx78
mul24.lo.<T:u32|s32>  T T T
mad.<lo|hi>.<T:u16|u32|u64|s16|s32|s64>  T T T T
mad.wide.<T:u16|u32|s16|s32>  2T T T 2T
mad.$ROUND{.ftz}{.sat}.f32  f32 f32 f32 f32
mad.$ROUND.f64  f64 f64 f64 f64
fma.$ROUND{.ftz}{.sat}.f32  f32 f32 f32 f32
fma.$ROUND.f64  f64 f64 f64 f64
fma.rn{.ftz}{.<sat|relu>}.<T:f16|f16x2>  T T T T  sm_53 ptx42
fma.rn{.relu}.<T:bf16|bf16x2>  T T T T  sm_80 ptx70
div.<T:u16|u32|u64|s16|s32|s64>  T T T
div.<approx|full>{.ftz}.f32  f32 f32 f32
div.$ROUND{.ftz}.f32  f32 f32 f32
div.rn.f64  f64 f64 f64
rem.<T:u16|u32|u64|s16|s32|s64>  T T T
sad.<T:u16|u32|u64|s16|s32|s64>  T T T T
abs.<T:s16|s32|s64>  T T
abs{.ftz}.<T:f32|f16|f16x2>  T T
abs.<T:f64|bf16|bf16x2>  T T
neg.<T:s16|s32|s64>  T T
neg{.ftz}.<T:f32|f16|f16x2>  T T
neg.<T:f64|bf16|bf16x2>  T T
min.<T:u16|u32|u64|s16|s32|s64>  T T T
min.<T:u16x2|s16x2>  T T T  sm_90 ptx80
min{.ftz}{.NaN}{.xorsign.abs}.f32  f32 f32 f32
min.f64  f64 f64 f64
min{.ftz}{.NaN}.<T:f16|f16x2>  T T T  sm_80 ptx70
min{.NaN}.<T:bf16|bf16x2>  T T T  sm_80 ptx70
max.<T:u16|u32|u64|s16|s32|s64>  T T T
max.<T:u16x2|s16x2>  T T T  sm_90 ptx80
max{.ftz}{.NaN}{.xorsign.abs}.f32  f32 f32 f32
max.f64  f64 f64 f64
max{.ftz}{.NaN}.<T:f16|f16x2>  T T T  sm_80 ptx70
max{.NaN}.<T:bf16|bf16x2>  T T T  sm_80 ptx70
rcp.approx{.ftz}.f32  f32 f32
rcp.$ROUND{.ftz}.f32  f32 f32
rcp.rn.f64  f64 f64
rcp.approx.ftz.f64  f64 f64
sqrt.approx{.ftz}.f32  f32 f32
sqrt.$ROUND{.ftz}.f32  f32 f32
sqrt.rn.f64  f64 f64
rsqrt.approx{.ftz}.f32  f32 f32
rsqrt.approx{.ftz}.f64  f64 f64
sin.approx{.ftz}.f32  f32 f32
cos.approx{.ftz}.f32  f32 f32
lg2.approx{.ftz}.f32  f32 f32
ex2.approx{.ftz}.f32  f32 f32
ex2.approx.<T:f16|f16x2>  T T  sm_75 ptx70
ex2.approx.ftz.<T:bf16|bf16x2>  T T  sm_90 ptx78
tanh.approx.f32  f32 f32  sm_75 ptx70
tanh.approx.<T:f16|f16x2>  T T  sm_75 ptx70
tanh.approx.<T:bf16|bf16x2>  T T  sm_90 ptx78
copysign.<T:f32|f64>  T T T
testp.<finite|infinite|number|notanumber|normal|subnormal>.<T:f32|f64>  p T
popc.<T:b32|b64>  b32 T
clz.<T:b32|b64>  b32 T
bfind{.shiftamt}.<T:u32|u64|s32|s64>  b32 T
brev.<T:b32|b64>  T T
bfe.<T:u32|u64|s32|s64>  T T b32 b32
bfi.<T:b32|b64>  T T T b32 b32
bmsk.<clamp|wrap>.b32  b32 b32 b32  sm_70 ptx76
szext.<clamp|wrap>.<T:u32|s32>  T T b32  sm_70 ptx76
dp4a.<T:u32|s32>.<S:u32|s32>  b32 T S b32  sm_61
dp2a.<lo|hi>.<T:u32|s32>.<S:u32|s32>  b32 T S b32  sm_61
and.<T:pred|b16|b32|b64>  T T T
or.<T:pred|b16|b32|b64>  T T T
xor.<T:pred|b16|b32|b64>  T T T
not.<T:pred|b16|b32|b64>  T T
cnot.<T:b16|b32|b64>  T T
lop3.b32  b32 b32 b32 b32 #
shl.<T:b16|b32|b64>  T T b32
shr.<T:b16|b32|b64|u16|u32|u64|s16|s32|s64>  T T b32
shf.<l|r>.<clamp|wrap>.b32  b32 b32 b32 b32
prmt.b32  b32 b32 b32 b32
prmt.b32.<f4e|b4e|rc8|ecl|ecr|rc16>  b32 b32 b32 b32
set.$COMPARE{.ftz}.<S:u32|s32|f32>.<T:b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64|f16|bf16>  S T T
setp.$COMPARE{.ftz}.$COMPARED  pred|p T T
setp.$COMPARE.<and|or|xor>{.ftz}.$COMPARED  pred|p T T p
setp.$COMPARE{.ftz}.f16x2  pred|p b32 b32
setp.$COMPARE.bf16  pred|p b16 b16  sm_90 ptx78
setp.$COMPARE.<and|or|xor>.bf16  pred|p b16 b16 p  sm_90 ptx78
setp.$COMPARE.bf16x2  pred|p b32 b32  sm_90 ptx78
selp.<T:b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64|f16|bf16>  T T T p
slct{.ftz}.<T:b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64>.<S:s32|f32>  T T T S
mov.<T:pred|b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64|f16|bf16>  name name
"""

_CONVERSIONS = """
cvt{.sat}.<T:$ANY>.<S:$ANY>  >T >S
cvt.$ROUND{.ftz}{.sat}.<T:f16|f32|f64>.<S:$ANY>  >T >S
cvt.$ROUND.<T:bf16>.<S:$ANY>  >T >S  sm_90 ptx78
cvt.$WHOLE{.ftz}{.sat}.<T:$ANY>.<S:f16|f32|f64>  >T >S
cvt.$WHOLE{.sat}.<T:$ANY>.<S:bf16>  >T >S  sm_90 ptx78
cvt{.ftz}{.sat}.<T:f32|f64>.<S:f16>  T S
cvt{.ftz}{.sat}.<T:f64>.<S:f32>  T S
cvt{.ftz}.<T:f32>.<S:bf16>  T S  sm_80 ptx71
cvt.<T:f64>.<S:bf16>  T S  sm_90 ptx78
cvt{.$ROUND}.<T:bf16|f16>.<S:bf16|f16>  T S  sm_90 ptx78
cvt.$ROUND{.ftz}{.sat}.<T:f32>.<S:f64>  T S
cvt.$ROUND{.ftz}{.sat}.<T:f16>.<S:f32|f64>  T S
cvt.$ROUND{.relu}.<T:bf16>.<S:f64>  T S  sm_90 ptx78
cvt.<rn|rz>{.relu}{.satfinite}.<T:bf16|f16>.<S:f32>  T S  sm_80 ptx70
cvt{.$WHOLE}{.ftz}{.sat}.<T:f32>.<S:f32>  T S
cvt{.$WHOLE}{.ftz}{.sat}.<T:f16>.<S:f16>  T S
cvt{.$WHOLE}{.sat}.<T:f64>.<S:f64>  T S
cvt.$WHOLE.<T:bf16>.<S:bf16>  T S  sm_90 ptx78
cvt.<rn|rz>{.relu}{.satfinite}.<T:f16x2|bf16x2>.<S:f32>  b32 f32 f32  sm_80 ptx70
cvt.rna{.satfinite}.<T:tf32>.<S:f32>  b32 f32  sm_80 ptx70
cvt.<rn|rz>{.relu}{.satfinite}.<T:tf32>.<S:f32>  b32 f32  sm_90 ptx78
cvt.rn.satfinite{.relu}.<T:e4m3x2|e5m2x2>.<S:f32>  b16 f32 f32  sm_89 ptx81
cvt.rn.satfinite{.relu}.<T:e4m3x2|e5m2x2>.<S:f16x2>  b16 b32  sm_89 ptx81
cvt.rn{.relu}.<T:f16x2>.<S:e4m3x2|e5m2x2>  b32 b16  sm_89 ptx81
cvt.pack.sat.<T:u16|s16>.s32  b32 s32 s32  sm_72 ptx65
cvt.pack.sat.<T:u8|s8>.s32.b32  b32 s32 s32 b32  sm_72 ptx65
cvta.<P:const|global|local|shared|shared::cta|shared::cluster|param|param::entry>.<T:u64|u32>  T T
cvta.to.<P:const|global|local|shared|shared::cta|shared::cluster|param>.<T:u64|u32>  T T
isspacep.<P:const|global|local|shared|shared::cta|shared::cluster|param>  p b64
mapa{.shared::cluster}.<T:u32|u64>  T T b32  sm_90 ptx78
getctarank{.shared::cluster}.<T:u32|u64>  b32 T  sm_90 ptx78
"""

_MEMORY = """
ld{.<weak|volatile>}$PLACES{.<ca|cg|cs|lu|cv>}{.nc}$LEVELS.$LOADED  {>T} [] ?b64
ld.<relaxed|acquire>.$SCOPE$PLACES$LEVELS.$LOADED  {>T} [] ?b64  sm_70 ptx60
ldu{.global}{.<v2|v4>}.$LOADED  {>T} []
st{.<weak|volatile>}$PLACES{.<wb|cg|cs|wt>}$LEVELS.$LOADED  [] {>T} ?b64
st.<relaxed|release>.$SCOPE$PLACES$LEVELS.$LOADED  [] {>T} ?b64  sm_70 ptx60
atom$ORDER.<O:add|inc|dec|min|max|and|or|xor|exch>.$WORD  T [] T
atom$ORDER.<O:add>.noftz.<T:f16|bf16|f16x2|bf16x2>  T [] T  sm_70 ptx62
atom$ORDER.<O:cas>.<T:b16|b32|b64>  T [] T T
red$ORDER.<O:add|inc|dec|min|max|and|or|xor>.$WORD  [] T
red$ORDER.<O:add>.noftz.<T:f16|bf16|f16x2|bf16x2>  [] T  sm_70 ptx62
red.async.relaxed.cluster.$TX.shared::cluster.<O:add|inc|dec|min|max|and|or|xor>.<T:u32|s32|b32|u64>  [] T []  sm_90 ptx81
st.async{.weak}.$TX{.shared::cluster}{.<v2|v4>}.$WORD  [] {T} []  sm_90 ptx81
prefetch{.<global|local>}.<L1|L2>  []
prefetch.global.L2::<evict_last|evict_normal>  []
prefetch{.<param|const>}.tensormap  []  sm_90 ptx80
prefetchu.L1  []
applypriority{.global}.L2::evict_normal  [] #  sm_80 ptx74
discard{.global}.L2  [] #  sm_80 ptx74
createpolicy.fractional.L2::evict_<last|normal|first|unchanged>{.L2::evict_<first|unchanged>}.b64  b64 ?f32  sm_80 ptx74
membar.<cta|gl|sys>
fence{.<sc|acq_rel|acquire|release>}.$SCOPE  sm_70 ptx60
fence.mbarrier_init.release.cluster  sm_90 ptx80
fence.proxy.<alias|async|async.global|async.shared::cta|async.shared::cluster>  sm_70 ptx75
fence.proxy.async::generic.<acquire|release>.sync_restrict::<shared::cta|shared::cluster>.cluster  sm_90 ptx86
fence.proxy.tensormap::generic.<acquire|release>.$SCOPE  ?[] ?#  sm_90 ptx83
"""

_CONTROL = """
bra{.uni}  name
ret{.uni}
exit
trap
brkpt
call{.uni}  name ?name ?name
implicit_def  name
nanosleep.u32  b32  sm_70 ptx63
pmevent{.mask}  #
griddepcontrol.<launch_dependents|wait>  sm_90 ptx78
bar{.cta}.<sync|arrive>  b32 ?b32
bar.warp.sync  b32  sm_30 ptx60
bar{.cta}.red.popc.u32  b32 b32 p
bar{.cta}.red.<and|or>.pred  p b32 p
barrier{.cta}.<sync|arrive>{.aligned}  b32 ?b32
barrier.cluster.<arrive|wait>{.<release|acquire|relaxed>}{.aligned}  sm_90 ptx78
shfl.sync.<up|down|bfly|idx>.b32  b32|p b32 b32 b32 b32  sm_30 ptx60
vote.sync.ballot.b32  b32 p b32  sm_30 ptx60
vote.sync.<any|all|uni>.pred  p p b32  sm_30 ptx60
match.any.sync.<T:b32|b64>  b32 T b32  sm_70 ptx60
match.all.sync.<T:b32|b64>  b32|p T b32  sm_70 ptx60
activemask.b32  b32
redux.sync.<O:add|min|max>.<T:u32|s32>  T T b32  sm_80 ptx70
redux.sync.<O:and|or|xor>.<T:b32>  T T b32  sm_80 ptx70
elect.sync  b32|p b32  sm_90 ptx80
setmaxnreg.<inc|dec>.sync.aligned.u32  #  sm_90a ptx80
"""

_ASYNC = """
cp.async.<ca|cg>.shared{.<shared::cta>}.global$HINT$AHEAD  [] [] # ?b32 ?b64  sm_80 ptx70
cp.async.<ca|cg>.<shared|shared::cta>.global$HINT$AHEAD  [] [] # ?b32 ?b64  sm_80 ptx70
cp.async.commit_group  sm_80 ptx70
cp.async.wait_group  #  sm_80 ptx70
cp.async.wait_all  sm_80 ptx70
cp.async.mbarrier.arrive{.noinc}$BARS.b64  []  sm_80 ptx70
cp.async.bulk.<shared::cluster|shared::cta>.global.$TX$HINT  [] [] b32 [] ?b64  sm_90 ptx80
cp.async.bulk.shared::cluster.global.$TX.multicast::cluster$HINT  [] [] b32 [] b16 ?b64  sm_90 ptx80
cp.async.bulk.shared::cluster.shared::cta.$TX  [] [] b32 []  sm_90 ptx80
cp.async.bulk.global.shared::cta.bulk_group$HINT  [] [] b32 ?b64  sm_90 ptx80
cp.async.bulk.prefetch.L2.global$HINT  [] b32 ?b64  sm_90 ptx80
cp.async.bulk.commit_group  sm_90 ptx80
cp.async.bulk.wait_group{.read}  #  sm_90 ptx80
cp.async.bulk.tensor.$RANK.<shared::cluster|shared::cta>.global{.tile}.$TX$HINT  [] [] [] ?b64  sm_90 ptx80
cp.async.bulk.tensor.$RANK.shared::cluster.global{.tile}.$TX.multicast::cluster$HINT  [] [] [] b16 ?b64  sm_90 ptx80
cp.async.bulk.tensor.$RANK.global.shared::cta{.tile}.bulk_group$HINT  [] [] ?b64  sm_90 ptx80
cp.async.bulk.prefetch.tensor.$RANK.L2.global{.tile}$HINT  [] ?b64  sm_90 ptx80
cp.reduce.async.bulk.tensor.$RANK.global.shared::cta.<O:add|min|max|and|or|xor>{.tile}.bulk_group$HINT  [] [] ?b64  sm_90 ptx80
mbarrier.init$BARS.b64  [] b32  sm_80 ptx70
mbarrier.inval$BARS.b64  []  sm_80 ptx70
mbarrier.<expect_tx|complete_tx>{.relaxed}{.<cta|cluster>}$FAR.b64  [] b32  sm_90 ptx80
mbarrier.<arrive|arrive_drop>{.<release|relaxed>}{.<cta|cluster>}$FAR.b64  b64 [] ?b32  sm_80 ptx70
mbarrier.<arrive|arrive_drop>{.<release|relaxed>}{.<cta|cluster>}$FAR.b64  [] ?b32  sm_80 ptx70
mbarrier.<arrive|arrive_drop>.noComplete{.release}{.cta}$BARS.b64  b64 [] b32  sm_80 ptx70
mbarrier.<arrive|arrive_drop>.expect_tx{.<release|relaxed>}{.<cta|cluster>}$FAR.b64  b64 [] b32  sm_90 ptx80
mbarrier.<arrive|arrive_drop>.expect_tx{.<release|relaxed>}{.<cta|cluster>}$FAR.b64  [] b32  sm_90 ptx80
mbarrier.test_wait{.<acquire|relaxed>}{.<cta|cluster>}$BARS.b64  p [] b64  sm_80 ptx70
mbarrier.test_wait.parity{.<acquire|relaxed>}{.<cta|cluster>}$BARS.b64  p [] b32  sm_80 ptx71
mbarrier.try_wait{.<acquire|relaxed>}{.<cta|cluster>}$BARS.b64  p [] b64 ?b32  sm_90 ptx78
mbarrier.try_wait.parity{.<acquire|relaxed>}{.<cta|cluster>}$BARS.b64  p [] b32 ?b32  sm_90 ptx78
mbarrier.pending_count.b64  b32 b64  sm_80 ptx70
"""

_N = "|".join(str(n) for n in range(8, 257, 8))
_N_INT = "|".join(str(n) for n in [8, 16, 24, *range(32, 257, 16)])
_TENSOR = f"""
ldmatrix.sync.aligned.m8n8.<x1|x2|x4>{{.trans}}{{.<shared|shared::cta>}}.b16  {{b32}} []  sm_75 ptx65
stmatrix.sync.aligned.m8n8.<x1|x2|x4>{{.trans}}{{.<shared|shared::cta>}}.b16  [] {{b32}}  sm_90 ptx78
mma.sync.aligned.m16n8k8.row.col.<D:f32|f16>.<A:f16>.<B:f16>.<C:f32|f16>  $FOUR  sm_75 ptx65
mma.sync.aligned.m16n8k16.row.col.<D:f32|f16>.<A:f16>.<B:f16>.<C:f32|f16>  $FOUR  sm_80 ptx70
mma.sync.aligned.<m16n8k8|m16n8k16>.row.col.<D:f32>.<A:bf16>.<B:bf16>.<C:f32>  $FOUR  sm_80 ptx70
mma.sync.aligned.<m16n8k4|m16n8k8>.row.col.<D:f32>.<A:tf32>.<B:tf32>.<C:f32>  $FOUR  sm_80 ptx70
mma.sync.aligned.<m16n8k16|m16n8k32>.row.col{{.satfinite}}.<D:s32>.<A:s8|u8>.<B:s8|u8>.<C:s32>  $FOUR  sm_80 ptx70
mma.sync.aligned.m16n8k32.row.col.<D:f32>.<A:e4m3|e5m2>.<B:e4m3|e5m2>.<C:f32>  $FOUR  sm_89 ptx84
mma.sync.aligned.m16n8k32.row.col.<D:f16>.<A:e4m3|e5m2>.<B:e4m3|e5m2>.<C:f16>  $FOUR  sm_89 ptx87
wgmma.fence.sync.aligned  sm_90a ptx80
wgmma.commit_group.sync.aligned  sm_90a ptx80
wgmma.wait_group.sync.aligned  #  sm_90a ptx80
wgmma.mma_async.sync.aligned.m64n<N:{_N}>k16.<D:f32|f16>.<A:f16>.<B:f16>  {{b32}} name b64 p # # ?# ?#  sm_90a ptx80
wgmma.mma_async.sync.aligned.m64n<N:{_N}>k16.<D:f32>.<A:bf16>.<B:bf16>  {{b32}} name b64 p # # ?# ?#  sm_90a ptx80
wgmma.mma_async.sync.aligned.m64n<N:{_N}>k8.<D:f32>.<A:tf32>.<B:tf32>  {{b32}} name b64 p # #  sm_90a ptx80
wgmma.mma_async.sync.aligned.m64n<N:{_N}>k32.<D:f32|f16>.<A:e4m3|e5m2>.<B:e4m3|e5m2>  {{b32}} name b64 p # #  sm_90a ptx80
wgmma.mma_async.sync.aligned.m64n<N:{_N_INT}>k32{{.satfinite}}.<D:s32>.<A:s8|u8>.<B:s8|u8>  {{b32}} name b64 p  sm_90a ptx80
"""

ISA = Isa(_ARITHMETIC + _CONVERSIONS + _MEMORY + _CONTROL + _ASYNC + _TENSOR, _MACROS)
