import sys, time, itertools, traceback, numpy as np
sys.path.insert(0,'.')
from app import filters
from app.backends.cuda.backend import CudaBackend
from app.backends.cpu import CpuBackend
from app.engine.image import Image; from app.engine.request import Request, Device
from app.engine.run import execute
from app.filters.spec import Border
import tests.oracle
from tests.test_contract import make, test_module, parameters_of, images, assert_close, default_tolerance, without_alpha
from tests.oracle import to_dtype
from app.backends.cuda.compiler import Nvrtc
gpu=CudaBackend(compiler=Nvrtc()); print(gpu.availability())
cpu=CpuBackend()
b={'gpu':gpu,'cpu':cpu}
bad=0; n=0; t0=time.time()
ids=sys.argv[1].split(',') if len(sys.argv)>1 else list(filters.discover())
for fid in ids:
    spec=filters.get(fid)
    if not spec.gpu_levels: print('no gpu',fid); continue
    fb=0; t=time.time()
    for case in range(len(test_module(fid).CASES)):
        par=parameters_of(fid,case); m=test_module(fid)
        for dt in map(np.dtype,('uint8','uint16','float32')):
            tol=getattr(m,'tolerance',default_tolerance)(par,dt)
            for border in spec.borders:
                for content,shape in images(dt,2*spec.radius(par)+1,border):
                    rgba=make(dt,content,shape)
                    for ch in (1,2,3,4):
                        col=without_alpha(rgba,3 if ch>2 else 1)
                        src=col if ch in(1,3) else np.concatenate([col,rgba[:,:,3:]],axis=2)
                        im=Image.from_array(src)
                        want=to_dtype(m.oracle(col,par,border),dt)
                        for lv in spec.gpu_levels:
                            n+=1
                            for limit in (None,) if shape[0]<17 else (None, max(4000, 40*src[0].nbytes)):
                                gpu.memory_limit=limit
                                try:
                                    r=execute(Request.create(im,fid,par,border=border,device=Device.GPU,level=lv.id),b)
                                    out=r.image.planes
                                    assert_close(out[:,:,:want.shape[2]],want,col,tol,f'{fid} {par} {dt} {border} {content}{shape} ch{ch} {lv.id} limit{limit}')
                                    if ch in(2,4): assert (out[:,:,-1]==src[(src.shape[0]-out.shape[0])//2:,(src.shape[1]-out.shape[1])//2:,-1][:out.shape[0],:out.shape[1]]).all(),'alpha'
                                except BaseException as e:
                                    fb+=1; bad+=1
                                    if fb<=4: print('FAIL',fid,par,dt,border,content,shape,ch,lv.id,limit,repr(e)[:600]); 
                                    if fb==1: traceback.print_exc()
    print(fid,'failures',fb,'seconds',round(time.time()-t,1),flush=True)
print('checks',n,'bad',bad,time.time()-t0)
gpu.memory_limit=None
for fid in ids:
    spec=filters.get(fid)
    if not spec.gpu_levels: continue
    for N in (4096,16384):
        im=Image.from_array(np.random.default_rng(0).integers(0,256,(N,N),dtype=np.uint8))
        for lv in spec.gpu_levels:
            if lv.id=='single-block' and N>4096: continue
            for rep in range(2):
                r=execute(Request.create(im,fid,{},device=Device.GPU,level=lv.id,repeat=5),b)
            st={}
            for s in r.stages: st[s.name]=st.get(s.name,0)+s.seconds*1e3
            print(fid,N,lv.id,{k:round(v,3) for k,v in st.items()}, gpu.last_launch.grid, gpu.last_launch.resources, round(gpu.last_launch.occupancy,2),flush=True)
d=gpu._device; print('copy GB/s', d.call(d.copy_rate)/1e9)
t=time.time(); gpu.close(); cpu.close(); print('closed')
