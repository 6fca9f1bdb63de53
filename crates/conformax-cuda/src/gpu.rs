//! `Gpu`: one device with its compiled kernels, and the launches on it.
#![allow(unsafe_code)] // The driver's and NVRTC's functions are C.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use cudarc::driver::sys as driver;
use cudarc::nvrtc::sys as nvrtc;

use crate::cache::cached;
use crate::program::Program;
use crate::{Error, Result};

/// A device and the kernels compiled for it. Compiled programs are kept in `$CONFORMAX_CACHE`, else in `conformax`
/// under `$XDG_CACHE_HOME` or `~/.cache`.
#[derive(Debug)]
pub struct Gpu {
    context: Context,
    /// `sm_90` and the like.
    architecture: String,
    multiprocessors: u32,
    kernels: RwLock<HashMap<Program, Kernel>>,
    /// One compilation at a time: a second thread wants the same program as a rule.
    compiling: Mutex<()>,
}

/// A stream of a device, as the driver's handle; 0 is the default stream.
#[derive(Clone, Copy, Debug)]
pub struct Stream(pub u64);

#[derive(Clone, Copy, Debug)]
struct Context(driver::CUcontext);
#[derive(Clone, Copy, Debug)]
struct Kernel(driver::CUfunction);

// SAFETY: handles of the driver may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}
// SAFETY: as above.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Gpu {
    /// Whether kernels can run here: a driver that starts, a device, and NVRTC.
    pub fn available() -> Result<()> {
        static FOUND: OnceLock<Result<()>> = OnceLock::new();
        FOUND.get_or_init(look).clone()
    }

    /// The device of this ordinal, as CUDA counts them.
    pub fn get(ordinal: usize) -> Result<Arc<Self>> {
        static GPUS: RwLock<Vec<Option<Arc<Gpu>>>> = RwLock::new(Vec::new());
        if let Some(Some(gpu)) = GPUS.read().expect("no holder panics").get(ordinal) {
            return Ok(gpu.clone());
        }
        Self::available()?;
        let mut gpus = GPUS.write().expect("no holder panics");
        if gpus.len() <= ordinal {
            gpus.resize(ordinal + 1, None);
        }
        if let Some(gpu) = &gpus[ordinal] {
            return Ok(gpu.clone());
        }
        let gpu = Arc::new(Self::open(ordinal)?);
        gpus[ordinal] = Some(gpu.clone());
        Ok(gpu)
    }

    fn open(ordinal: usize) -> Result<Self> {
        use driver::CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as COUNT,
        };
        let mut device = 0;
        let mut context = std::ptr::null_mut();
        // SAFETY: both write to the variables they are given. The primary context, which PyTorch uses too, is kept for
        // good.
        unsafe {
            check("cuDeviceGet", driver::cuDeviceGet(&raw mut device, ordinal as c_int))?;
            check("cuDevicePrimaryCtxRetain", driver::cuDevicePrimaryCtxRetain(&raw mut context, device))?;
        }
        let attribute = |which| {
            let mut value: c_int = 0;
            // SAFETY: writes to `value`.
            let code = unsafe { driver::cuDeviceGetAttribute(&raw mut value, which, device) };
            check("cuDeviceGetAttribute", code).map(|()| value)
        };
        Ok(Self {
            context: Context(context),
            architecture: format!("sm_{}{}", attribute(MAJOR)?, attribute(MINOR)?),
            multiprocessors: attribute(COUNT)?.unsigned_abs(),
            kernels: RwLock::default(),
            compiling: Mutex::new(()),
        })
    }

    /// Multiprocessors of the device.
    pub(crate) fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Launches a kernel whose only parameter is `parameters`, laid out as C does.
    ///
    /// # Safety
    ///
    /// `P` must be the struct that the kernel takes, and its addresses must be what the kernel reads and writes, on
    /// this device, alive until the stream has passed the launch.
    pub(crate) unsafe fn launch<P: Copy>(
        &self,
        program: Program,
        blocks: u64,
        threads: u32,
        stream: Stream,
        mut parameters: P,
    ) -> Result<()> {
        let _current = self.context.enter()?;
        let Kernel(kernel) = self.kernel(program)?;
        let mut pointers = [(&raw mut parameters).cast::<c_void>()];
        let grid = u32::try_from(blocks).ok().filter(|blocks| *blocks <= i32::MAX.unsigned_abs());
        let grid = grid.ok_or(Error::Shape { rows: blocks, classes: 0 })?;
        // SAFETY: the one parameter is the caller's promise; the driver copies it before it returns.
        let code = unsafe {
            driver::cuLaunchKernel(
                kernel,
                grid,
                1,
                1,
                threads,
                1,
                1,
                0,
                stream.0 as driver::CUstream,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        check("cuLaunchKernel", code)
    }

    /// Sets so many bytes to a value.
    ///
    /// # Safety
    ///
    /// They are memory of this device, alive until the stream has passed.
    pub(crate) unsafe fn fill(&self, at: u64, value: u8, bytes: u64, stream: Stream) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the address is the caller's promise.
        let code =
            unsafe { driver::cuMemsetD8Async(at, value, bytes as usize, stream.0 as driver::CUstream) };
        check("cuMemsetD8Async", code)
    }

    /// Waits for the stream and reads so many numbers.
    ///
    /// # Safety
    ///
    /// They are memory of this device.
    pub(crate) unsafe fn read<const N: usize>(&self, at: u64, stream: Stream) -> Result<[u64; N]> {
        let _current = self.context.enter()?;
        let (mut numbers, stream) = ([0_u64; N], stream.0 as driver::CUstream);
        // SAFETY: the address is the caller's promise; the copy is over before the numbers are looked at or go.
        unsafe {
            let to = (&raw mut numbers).cast::<c_void>();
            let copied = driver::cuMemcpyDtoHAsync_v2(to, at, size_of_val(&numbers), stream);
            let waited = driver::cuStreamSynchronize(stream);
            check("cuMemcpyDtoHAsync", copied)?;
            check("cuStreamSynchronize", waited)?;
        }
        Ok(numbers)
    }

    fn kernel(&self, program: Program) -> Result<Kernel> {
        if let Some(kernel) = self.kernels.read().expect("no holder panics").get(&program) {
            return Ok(*kernel);
        }
        let _alone = self.compiling.lock().expect("no holder panics");
        if let Some(kernel) = self.kernels.read().expect("no holder panics").get(&program) {
            return Ok(*kernel);
        }
        let source = program.source();
        let mut options = program.options();
        options.push(format!("--gpu-architecture={}", self.architecture));
        let key = format!("{}\n{}\n{source}", compiler_version()?, options.join(" "));
        let binary = cached(&key, || compile(program.kernel(), &source, &options))?;
        let kernel = load(program.kernel(), &binary)?;
        self.kernels.write().expect("no holder panics").insert(program, kernel);
        Ok(kernel)
    }
}

impl Context {
    /// Makes the context the thread's own until the guard goes.
    fn enter(self) -> Result<Entered> {
        // SAFETY: the context is retained for good.
        check("cuCtxPushCurrent", unsafe { driver::cuCtxPushCurrent_v2(self.0) })?;
        Ok(Entered)
    }
}

struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        let mut left = std::ptr::null_mut();
        // SAFETY: undoes the push that made this guard; the thread's context is what it was before.
        unsafe { driver::cuCtxPopCurrent_v2(&raw mut left) };
    }
}

fn look() -> Result<()> {
    // SAFETY: opens the library if there is one. cudarc's other functions panic without it, so this comes first.
    if !unsafe { driver::is_culib_present() } {
        return Err(Error::NoDriver);
    }
    // SAFETY: may be called any number of times.
    check("cuInit", unsafe { driver::cuInit(0) })?;
    if has_compiler() { Ok(()) } else { Err(Error::NoCompiler) }
}

/// Whether NVRTC is found.
pub(crate) fn has_compiler() -> bool {
    // SAFETY: opens the library if there is one.
    unsafe { nvrtc::is_culib_present() }
}

fn check(call: &'static str, code: driver::CUresult) -> Result<()> {
    if code == driver::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: writes the address of a text that lives as long as the driver, or null for a code it does not know.
    let reason = unsafe {
        driver::cuGetErrorString(code, &raw mut text);
        if text.is_null() { format!("{code:?}") } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    };
    Err(Error::Driver { call, reason })
}

fn compiler_version() -> Result<String> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: writes to both variables.
    match unsafe { nvrtc::nvrtcVersion(&raw mut major, &raw mut minor) } {
        nvrtc::nvrtcResult::NVRTC_SUCCESS => Ok(format!("nvrtc {major}.{minor}")),
        _ => Err(Error::NoCompiler),
    }
}

pub(crate) fn compile(kernel: &'static str, source: &str, options: &[String]) -> Result<Vec<u8>> {
    use nvrtc::nvrtcResult::NVRTC_SUCCESS;
    let failed = |log: String| Error::Compile { kernel, log };
    let text = |it: &str| CString::new(it).map_err(|_| failed("a text with a zero byte".to_owned()));
    let (source, name) = (text(source)?, text(kernel)?);
    let options: Vec<CString> = options.iter().map(|option| text(option)).collect::<Result<_>>()?;
    let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let mut program = std::ptr::null_mut();
    // SAFETY: texts end in a zero and outlive the calls; sizes are asked for before they are filled; the program is
    // destroyed on every path.
    unsafe {
        let made = nvrtc::nvrtcCreateProgram(
            &raw mut program,
            source.as_ptr(),
            name.as_ptr(),
            0,
            std::ptr::null(),
            std::ptr::null(),
        );
        if made != NVRTC_SUCCESS {
            return Err(failed(format!("{made:?}")));
        }
        let mut code = nvrtc::nvrtcCompileProgram(program, options.len() as c_int, options.as_ptr());
        let mut binary = Vec::new();
        if code == NVRTC_SUCCESS {
            let mut size = 0;
            nvrtc::nvrtcGetCUBINSize(program, &raw mut size);
            binary.resize(size, 0_u8);
            code = nvrtc::nvrtcGetCUBIN(program, binary.as_mut_ptr().cast());
        }
        let mut size = 0;
        nvrtc::nvrtcGetProgramLogSize(program, &raw mut size);
        let mut log = vec![0_u8; size];
        nvrtc::nvrtcGetProgramLog(program, log.as_mut_ptr().cast());
        nvrtc::nvrtcDestroyProgram(&raw mut program);
        if code == NVRTC_SUCCESS {
            return Ok(binary);
        }
        Err(failed(format!("{code:?} {}", String::from_utf8_lossy(&log).trim_end_matches('\0'))))
    }
}

fn load(kernel: &'static str, binary: &[u8]) -> Result<Kernel> {
    // Loading a module is not allowed to a thread whose stream is being captured, unless it says that it may.
    let mut mode = driver::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let name = CString::new(kernel).map_err(|_| Error::Compile { kernel, log: "its name".to_owned() })?;
    let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: `binary` is a whole program, which the driver checks; the module is kept for good. The mode is put back.
    unsafe {
        driver::cuThreadExchangeStreamCaptureMode(&raw mut mode);
        let loaded = driver::cuModuleLoadData(&raw mut module, binary.as_ptr().cast());
        driver::cuThreadExchangeStreamCaptureMode(&raw mut mode);
        check("cuModuleLoadData", loaded)?;
        check("cuModuleGetFunction", driver::cuModuleGetFunction(&raw mut function, module, name.as_ptr()))?;
    }
    Ok(Kernel(function))
}
