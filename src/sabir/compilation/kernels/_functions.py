"""temporary"""
from sabir.compilation.kernels._emitter import Emitter, Register, Kind
def _b(f,i):
    def g(e, o): return e.binary(f if o[0].kind.is_float else i, *o)
    return g
def _c(f,i):
    def g(e,o): return e.compare('fcmp '+f if o[0].kind.is_float else 'icmp '+i,*o)
    return g
def _max(e,o):
    a,b=o; c=e.compare('fcmp ugt' if a.kind.is_float else 'icmp sgt',a,b); return e.select(c,a,b)
def _min(e,o):
    a,b=o; c=e.compare('fcmp ult' if a.kind.is_float else 'icmp slt',a,b); return e.select(c,a,b)
def _exp(e,o):
    x,=o; c=lambda v:e.constant(x.kind,v)
    t=e.compare('fcmp ogt',x,c(88.0)); x=e.select(t,c(88.0),x); t=e.compare('fcmp olt',x,c(-87.0)); x=e.select(t,c(-87.0),x)
    n=e.intrinsic('roundeven',e.binary('fmul',x,c(1.44269504088896341)))
    r=e.fma(n,c(-0.693359375),x); r=e.fma(n,c(2.12194440e-4),r); p=c(1.9875691500e-4)
    for k in (1.3981999507e-3,8.3334519073e-3,4.1665795894e-2,1.6666665459e-1,5.0000001201e-1): p=e.fma(p,r,c(k))
    p=e.binary('fadd',e.fma(p,e.binary('fmul',r,r),r),c(1.0))
    i=e.convert('fptosi',n,'i32'); i=e.binary('shl',i,e.constant(i.kind,23)); pi=e.convert('bitcast',p,'i32')
    return e.convert('bitcast',e.binary('add',pi,i),'float')
FUNCTIONS={'add':_b('fadd','add'),'sub':_b('fsub','sub'),'mul':_b('fmul','mul'),'div':_b('fdiv','sdiv'),'max':_max,'min':_min,
 'eq':_c('oeq','eq'),'ne':_c('une','ne'),'lt':_c('olt','slt'),'le':_c('ole','sle'),'gt':_c('ogt','sgt'),'ge':_c('oge','sge'),
 'where':lambda e,o:e.select(*o),'neg':lambda e,o:e.unary('fneg',o[0]) if o[0].kind.is_float else e.binary('sub',e.constant(o[0].kind,0),o[0]),
 'exp':_exp,'sqrt':lambda e,o:e.intrinsic('sqrt',o[0]),'rsqrt':lambda e,o:e.binary('fdiv',e.constant(o[0].kind,1),e.intrinsic('sqrt',o[0])),
 'reciprocal':lambda e,o:e.binary('fdiv',e.constant(o[0].kind,1),o[0]),
 'erf':lambda e,o:o[0],'tanh':lambda e,o:o[0],'pow':lambda e,o:e.binary('fmul',o[0],o[0]),
 'and':_b('and','and'),'or':_b('or','or')}
def cast(e,x,s,t):
    if s==t: return x
    from sabir.compilation.kernels._body import SCALARS
    f=t in('float','double'); sf=s in('float','double'); a=SCALARS[t]; b=SCALARS[s]
    if t=='bool': return e.compare('fcmp une' if sf else 'icmp ne',x,e.constant(x.kind,0))
    if s=='bool': return e.convert('uitofp' if f else 'zext',x,a)
    if sf and f: return e.convert('fpext' if t=='double' else 'fptrunc',x,a)
    if sf: return e.convert('fptosi',x,a)
    if f: return e.convert('sitofp',x,a)
    if a==b: return x
    return e.convert('trunc' if e.constant(Kind(a),0).kind.bits<x.kind.bits else 'sext',x,a)
