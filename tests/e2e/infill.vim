" Asks /infill as llama.vim does, with the same curl command and the same fields, and shows the answer as
" virtual text; <Tab> accepts it. The plug-in itself is in no package registry.
let s:namespace = nvim_create_namespace('infill')
let g:shown = ''
let s:job = 0 " the last request: answers to earlier ones are dropped

function! s:request() abort
  let l:line = getline('.')
  let l:column = col('.') - 1
  let l:is_blank = l:line =~# '^\s*$'
  let l:timings = ['prompt_n', 'prompt_ms', 'prompt_per_token_ms', 'prompt_per_second',
        \ 'predicted_n', 'predicted_ms', 'predicted_per_token_ms', 'predicted_per_second']
  return {
        \ 'id_slot': 0,
        \ 'input_prefix': join(getline(max([1, line('.') - 256]), line('.') - 1), "\n") . "\n",
        \ 'input_suffix': (l:is_blank ? '' : strpart(l:line, l:column)) . "\n"
        \   . join(getline(line('.') + 1, line('.') + 64), "\n") . "\n",
        \ 'input_extra': [],
        \ 'prompt': l:is_blank ? '' : strpart(l:line, 0, l:column),
        \ 'n_predict': 128,
        \ 'stop': [],
        \ 'n_cmpl': 1,
        \ 'n_indent': l:is_blank ? 0 : strlen(matchstr(l:line, '^\s*')),
        \ 'top_k': 40,
        \ 'top_p': 0.90,
        \ 'samplers': ['top_k', 'top_p', 'infill'],
        \ 'stream': v:false,
        \ 'cache_prompt': v:true,
        \ 't_max_prompt_ms': 500,
        \ 't_max_predict_ms': 250,
        \ 'response_fields': ['content'] + map(l:timings, {_, name -> 'timings/' . name})
        \   + ['truncated', 'tokens_cached'],
        \ }
endfunction

function! s:show(job, data, event) abort
  let l:raw = join(a:data, "\n")
  if a:job != s:job || l:raw !~# '\v"content"\s*:"'
    return
  endif
  let g:answer = json_decode(l:raw)
  let g:shown = g:answer['content']
  let l:lines = split(g:shown, "\n", 1)
  call nvim_buf_clear_namespace(0, s:namespace, 0, -1)
  call nvim_buf_set_extmark(0, s:namespace, line('.') - 1, col('.') - 1, {
        \ 'virt_text': [[l:lines[0], 'Comment']], 'virt_text_pos': 'overlay',
        \ 'virt_lines': map(l:lines[1:], {_, text -> [[text, 'Comment']]}) })
endfunction

function! Ask() abort
  let s:job = jobstart(['curl', '--silent', '--no-buffer', '--request', 'POST', '--url', g:endpoint,
        \ '--header', 'Content-Type: application/json', '--data', '@-'],
        \ {'on_stdout': function('s:show'), 'stdout_buffered': v:true})
  call chansend(s:job, json_encode(s:request()))
  call chanclose(s:job, 'stdin')
endfunction

function! Accept() abort
  let l:line = getline('.')
  let l:before = l:line =~# '^\s*$' ? '' : strpart(l:line, 0, col('.') - 1)
  let l:lines = split(l:before . g:shown, "\n", 1)
  call setline('.', l:lines[0])
  call append('.', l:lines[1:])
  call cursor(line('.') + len(l:lines) - 1, strlen(l:lines[-1]) + 1)
  call nvim_buf_clear_namespace(0, s:namespace, 0, -1)
  let g:shown = ''
endfunction

autocmd CursorMovedI * call Ask()
inoremap <Tab> <Cmd>call Accept()<CR>
